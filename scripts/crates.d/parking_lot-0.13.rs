
// Of parking_lot's private functions, those that its tests call.
#[cfg(test)]
impl<const RECURSIVE: bool> RawRwLock<RECURSIVE> {
    pub(crate) fn has_parked_threads(&self) -> bool {
        overlock_core::raw::RawRwLock::is_contended(&self.0.0)
    }
}
