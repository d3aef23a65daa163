//! The public suite on the local executor.

use std::future::{Ready, ready};

use openvaala_executor::conformance::Target;

use super::support::{executor, temp_dir};

fn make() -> Ready<Target> {
    let (folder, root) = temp_dir();
    ready(Target::new(executor(), root, folder))
}

openvaala_executor::executor_conformance!(make);
