//! End-to-end tests, with the real binary, in one program: what `make test` runs is here, what
//! `make test-deep` runs is in `deep`, and what takes hours is ignored in both (`make test-all`).

mod above;
mod architecture;
mod audit;
mod backings;
mod breaches;
mod broken_disk;
mod common;
mod compare;
mod deep;
mod device;
mod examples;
mod exports;
mod getting_started;
mod guests;
mod hostile_hosts;
mod hostile_journals;
mod hostile_plans;
mod interrupted;
mod machines;
mod made;
mod metrics;
mod old_journals;
mod page;
mod progress;
mod referee;
mod repeats;
mod scan;
mod simulated;
mod site;
mod space;
mod store;
mod trace;
mod usage;
mod words;
