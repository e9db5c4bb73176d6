
// Of parking_lot's private functions, those that its tests call.
#[cfg(test)]
impl Condvar {
    fn wait_while_until_internal<T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        condition: impl FnMut(&mut T) -> bool,
        limit: Option<std::time::Instant>,
    ) -> WaitTimeoutResult {
        match limit {
            Some(limit) => self.wait_while_until(guard, condition, limit),
            None => {
                self.wait_while(guard, condition);
                // No limit, no timeout.
                self.wait_while_for(guard, |_| false, std::time::Duration::ZERO)
            }
        }
    }
}
