//! Replies of the server as values, and the data that the terminal and the web page make
//! of them. Only functions with a `Server` as argument use the connection.

pub mod attempts;
pub mod batch;
pub mod change;
pub mod children;
pub mod coded;
pub mod count;
pub mod envelope;
pub mod error_text;
pub mod errors;
pub mod family;
pub mod find;
pub mod group;
pub mod history;
pub mod instance;
pub mod keys;
pub mod limit;
pub mod listing;
pub mod message;
pub mod option_words;
pub mod overview;
pub mod past;
pub mod progress;
pub mod queue;
pub mod record;
pub mod run_times;
pub mod schedule;
pub mod search;
pub mod series;
pub mod settings;
pub mod step;
pub mod trouble;
pub mod watch;
pub mod workers;
