//! Headings of reports, the same in every format.

pub(crate) const TO_USE: &str = "To use";
pub(crate) const WHY: &str = "Why";
pub(crate) const LEDGERS: &str = "Why: where the time went";
pub(crate) const WARNINGS: &str = "Warnings";
pub(crate) const OTHER_COSTS: &str = "Other costs";
pub(crate) const TRADE_OFFS: &str = "Trade-offs";
pub(crate) const FEATURES: &str = "Features and limits";
pub(crate) const SETTINGS: &str = "Actual settings";
pub(crate) const SUSPICIOUS: &str = "Suspicious readings";
pub(crate) const NOT_MEASURED: &str = "Not measured";
pub(crate) const WEAKER: &str = "Weaker durability";
pub(crate) const TIME_SPENT: &str = "How time was spent";
pub(crate) const BEST_OF_EACH: &str = "Best of each file system";
