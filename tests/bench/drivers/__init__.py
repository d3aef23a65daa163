"""One file a product; the harness knows none of them."""
