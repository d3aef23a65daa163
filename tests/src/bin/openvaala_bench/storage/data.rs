//! A generated data directory that lasts as long as its measures.

use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use super::Setting;
use crate::Failure;
use crate::generate::{self, Author, Plan};

#[derive(Debug)]
pub(super) struct Data {
    pub(super) path: PathBuf,
    pub(super) author: Author,
    keep: bool,
}

impl Data {
    /// Writes the directory of a plan, or takes one that an earlier run left.
    pub(super) async fn prepare(
        setting: &Setting,
        name: &str,
        plan: Plan,
        with_index: bool,
    ) -> Result<Self, Failure> {
        let path = setting.folder.join(name);
        let made = serde_json::to_string(&plan)?;
        let marker = path.with_extension("made");
        let data = Self {
            path,
            author: Author::new(plan),
            keep: setting.keep,
        };
        if fs::read_to_string(&marker).is_ok_and(|left| left == made) {
            return Ok(data);
        }
        data.remove()?;
        let began = Instant::now();
        generate::write(&data.path, &data.author).await?;
        if with_index {
            generate::index(&data.path).await?;
        }
        let took = began.elapsed().as_secs_f64();
        eprintln!("generated {} in {took:.1} s", data.path.display());
        fs::write(marker, made)?;
        Ok(data)
    }

    fn remove(&self) -> Result<(), Failure> {
        let marker = self.path.with_extension("made");
        if marker.exists() {
            fs::remove_file(marker)?;
        }
        if self.path.exists() {
            fs::remove_dir_all(&self.path)?;
        }
        Ok(())
    }
}

impl Drop for Data {
    fn drop(&mut self) {
        if self.keep {
            return;
        }
        if let Err(error) = self.remove() {
            eprintln!("{} could not be removed: {error}", self.path.display());
        }
    }
}
