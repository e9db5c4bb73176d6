//! After fork(): what [`overlock_core::fork`] says, for platforms with the family's tables.

use overlock_core::fork;

use crate::tables::FamilyPlatform;

/// As [`overlock_core::fork::forget_others`], and clears the entries of threads that exist only in
/// the parent from the family's tables. A slot stays in use if its thread was in the middle of
/// acquiring a [fast queue lock](crate::spin::fast_queue), which still names its ticket.
///
/// The tickets of fast queue locks need nothing: their counters are as they were. At most a ticket
/// that was just changing its holder is lost.
///
/// # Safety
///
/// As there.
pub unsafe fn forget_others<P: FamilyPlatform>(mine: Option<usize>, mut free: impl FnMut(usize)) {
    let tables = P::family_tables();
    let others = |index: usize| {
        if (tables.threads.get(index)).is_none_or(|thread| thread.forget()) {
            free(index);
        }
    };
    // SAFETY: the caller's promise.
    unsafe { fork::forget_others::<P>(mine, others) };
    tables.waiters.iter().for_each(|line| line.forget());
    tables.lock_hash.iter().for_each(|line| line.forget());
}

#[cfg(test)]
mod tests;
