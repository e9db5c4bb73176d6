//! All types in a program with one thread, as WebAssembly has it: nobody waits, and limits end.

use std::time::Duration;

use overlock::{Barrier, Condvar, Mutex, Once, OnceLock, PerCpuRwLock, RwLock, Semaphore, WwMutex};

const SOON: Duration = Duration::from_millis(2);

fn main() {
    let mutex = Mutex::new(1);
    *mutex.lock() += 1;
    {
        let guard = mutex.lock();
        assert!(mutex.try_lock().is_none());
        assert!(mutex.try_lock_for(SOON).is_none());
        assert_eq!(*guard, 2);
    }

    let rwlock = RwLock::new(1);
    {
        let readers = [rwlock.read(), rwlock.read()];
        assert!(rwlock.try_write().is_none());
        assert!(rwlock.try_write_for(SOON).is_none());
        assert_eq!(*readers[0], *readers[1]);
    }
    *rwlock.write() += 1;

    let rare = PerCpuRwLock::new(1);
    *rare.write() += 1;
    assert_eq!(*rare.read(), 2);

    let changed = Condvar::new();
    let mut guard = mutex.lock();
    assert!(changed.wait_for(&mut guard, SOON).timed_out());
    changed.notify_all();
    drop(guard);

    let permits = Semaphore::new(1);
    let permit = permits.acquire();
    assert!(permits.try_acquire().is_none());
    drop(permit);

    static CALLED: Once = Once::new();
    CALLED.call_once(|| ());
    static FIRST: OnceLock<u32> = OnceLock::new();
    assert_eq!(*FIRST.get_or_init(|| 7), 7);
    assert!(Barrier::new(1).wait().is_leader());
    println!(
        "{mutex:?} {rwlock:?} {}",
        std::any::type_name::<WwMutex<u32>>()
    );
}
