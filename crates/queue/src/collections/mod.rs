//! Collections that do not depend on queues: ordered sets, tables and lists whose steps
//! are bounded, however large they are.

pub mod footprint;
pub mod long_list;
pub(crate) mod merge;
pub mod name_table;
pub mod number_table;
pub mod ordered;
pub mod rare;
pub mod rate_window;
pub mod slots;
pub mod table;
