//! The file in which the history is kept over a restart.

use std::env;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use crate::data_folder::data_folder;
use crate::failure::Failure;
use crate::model::past::Pasts;

/// Maximum length of the name of a file, in characters.
const LONGEST: usize = 120;

/// The file of the history.
pub struct HistoryFile(PathBuf);

impl HistoryFile {
    /// Opens a file, with the history that it has.
    pub fn open(path: PathBuf) -> Result<(HistoryFile, Pasts), Failure> {
        let error = |error: io::Error| Failure::mistake(format!("{}: {error}", path.display()));
        let pasts = match fs::read(&path) {
            Ok(text) => Pasts::read(&String::from_utf8_lossy(&text)),
            // A file that cannot be written is found now, and not after five minutes.
            Err(none) if none.kind() == io::ErrorKind::NotFound => {
                fs::write(&path, "").map_err(error)?;
                Pasts::default()
            }
            Err(failed) => return Err(error(failed)),
        };
        Ok((HistoryFile(path), pasts))
    }

    /// Opens the file of a server, of which only some queues may be `shown`, in the directory of the
    /// service or in the data folder. If that is not possible, a line of the log says why.
    pub fn usual<'a>(
        server: &str,
        shown: impl Iterator<Item = &'a String>,
    ) -> Option<(HistoryFile, Pasts)> {
        let service = env::var_os("STATE_DIRECTORY").map(PathBuf::from);
        let folder = service.or_else(|| Some(data_folder()?.join("web")))?;
        let mut name = server.to_owned();
        for queue in shown {
            name = format!("{name}-{queue}");
        }
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        let name: String = name.chars().map(plain).take(LONGEST).collect();
        let path = folder.join(name + ".history");
        let made = fs::create_dir_all(&folder).map_err(Failure::from);
        match made.and_then(|()| HistoryFile::open(path)) {
            Ok(file) => Some(file),
            Err(failure) => {
                eprintln!("dq: the history is not kept over a restart: {failure}");
                None
            }
        }
    }

    /// Writes the lines. If the program dies meanwhile, the old file stays.
    pub fn write(&self, lines: impl Iterator<Item = String>) {
        let fresh = self.0.with_extension(format!("{}.new", std::process::id()));
        let write = || -> io::Result<()> {
            let mut file = BufWriter::new(File::create(&fresh)?);
            for line in lines {
                file.write_all(line.as_bytes())?;
            }
            file.into_inner()?;
            fs::rename(&fresh, &self.0)
        };
        if let Err(error) = write() {
            eprintln!("dq: the history: {}: {error}", self.0.display());
        }
    }
}
