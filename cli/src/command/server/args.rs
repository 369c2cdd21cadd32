//! The options of `dq server`.

use std::path::PathBuf;

/// The default port of a server, as of Redis.
pub const PORT: u16 = 6379;

/// Options of `dq server`.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "The server")]
pub struct Args {
    /// The port. 6379 unless told; with --ephemeral a free one
    #[arg(long)]
    pub port: Option<u16>,
    /// The addresses to listen on. This machine only, unless told
    #[arg(long, value_name = "ADDRESS", num_args = 1..)]
    pub bind: Vec<String>,
    /// Where the data is kept: ~/.local/share/dq/PORT unless told
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// A file with the password that clients must give
    #[arg(long, value_name = "FILE")]
    pub password_file: Option<PathBuf>,
    /// How much memory the queues may take, such as 2gb. At the limit sends are refused
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub memory: Option<String>,
    /// More settings, in a file like valkey.conf. Options of this command line win over it
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Serve the queues to clients of Amazon SQS as well, on this port of this machine: see dq sqs
    #[arg(long, value_name = "PORT", conflicts_with = "password_file")]
    pub sqs: Option<u16>,
    /// A server for tests: in memory, on a free port, gone with the process that started
    /// it. Prints its URL when it is ready
    #[arg(long, conflicts_with = "data")]
    pub ephemeral: bool,
    /// Become this server. For the process that this program starts.
    #[arg(long, hide = true, value_name = "PROGRAM")]
    pub become_engine: Option<PathBuf>,
    /// The process without which that server must end.
    #[arg(long, hide = true, value_name = "PID", requires = "become_engine")]
    pub with: Option<u32>,
    /// Whether that process traces the server.
    #[arg(long, hide = true, requires = "become_engine")]
    pub traced: bool,
}

/// Accepts a size as the server does: 100mb, 2gb, 1073741824.
fn size(text: &str) -> Result<String, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = text[digits.len()..].to_ascii_lowercase();
    let known = ["", "b", "k", "kb", "m", "mb", "g", "gb"].contains(&unit.as_str());
    match digits.parse::<u64>() {
        Ok(_) if known => Ok(text.to_owned()),
        _ => Err("a size is a number of bytes, or one with kb, mb or gb, such as 2gb".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_a_number_and_a_known_unit() {
        for good in ["2gb", "100MB", "5k", "1073741824"] {
            assert_eq!(size(good).as_deref(), Ok(good));
        }
        for bad in ["", "gb", "2tb", "-1", "2 gb", "1.5gb"] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }
}
