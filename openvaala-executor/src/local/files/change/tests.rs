use std::os::unix::fs::{MetadataExt, symlink};

use pretty_assertions::assert_eq;
use tempfile::TempDir;

use super::*;
use crate::file::Expected;
