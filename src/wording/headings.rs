//! Headings of reports, the same in every format.

pub const WARNINGS: &str = "Warnings";
pub const OTHER_COSTS: &str = "Other costs";
pub const TRADE_OFFS: &str = "Trade-offs";
pub const FEATURES: &str = "Features and limits";
pub const SETTINGS: &str = "Actual settings";
pub const SUSPICIOUS: &str = "Suspicious readings";
pub const NOT_MEASURED: &str = "Not measured";
pub const WEAKER: &str = "Weaker durability";
pub const TIME_SPENT: &str = "How time was spent";
pub const BEST_OF_EACH: &str = "Best of each file system";
