//! Objects that stay the C library's, as [`crate::mutex`] says: the report names them, since their
//! waits are not counted.

use core::sync::atomic::Ordering::Relaxed;

use overlock_shared::ObjectKind;
use overlock_stat::table;

use super::{Spot, Where};
use crate::config;
use crate::site::Site;

/// An object of this kind is initialised at `site`, with statistics.
#[cold]
pub(crate) fn keeps(object: usize, kind: ObjectKind, site: Site) {
    if !config::get().stat {
        return;
    }
    table::keeping_errno(|| {
        let at = Spot::of(Where {
            object,
            kind,
            site,
            mark: 0,
        });
        if let Some((_, entry)) = at.entry() {
            entry.acquisitions.fetch_add(1, Relaxed);
        }
    });
}
