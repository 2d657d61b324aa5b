//! A folder on a file system that is there already; needs no root and destroys nothing.

use super::{Backing, room};
use crate::stack::{Action, Step};

pub(super) fn with_code(data: Backing) -> Backing {
    Backing {
        steps: |settings, place| {
            let folder = settings.path("path").unwrap_or_default().join(&place.name);
            let make = Step::folder(format!("make the folder {}", folder.display()), folder.clone());
            vec![make, Step::new("work in it", Action::UseDirectory(folder))]
        },
        objection: |settings| room::directory(settings, "path"),
        ..data
    }
}
