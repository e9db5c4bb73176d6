// overlock's locks as C++ classes, for std::lock_guard, std::unique_lock, std::shared_lock,
// std::scoped_lock and std::condition_variable_any.
//
//     static overlock::mutex lock;
//     std::lock_guard<overlock::mutex> guard(lock);
//
// C++11. The functions do what those of std's classes with the same names do; overlock.h says more.
// Nothing throws, nothing is allocated, and the constructors are constant expressions, so statics
// are ready before any code runs.
#ifndef OVERLOCK_HPP
#define OVERLOCK_HPP

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <limits>
#include <mutex>

#include "overlock.h"

namespace overlock {

namespace detail {

// Now plus the timeout, for overlock.h's functions: std::chrono::steady_clock is CLOCK_MONOTONIC.
// Never early.
template <class Rep, class Period>
timespec after(const std::chrono::duration<Rep, Period>& timeout) {
    using clock = std::chrono::steady_clock;
    const clock::time_point now = clock::now();
    clock::time_point end = clock::time_point::max();
    if (timeout <= timeout.zero()) {
        end = now;
    } else if (std::chrono::duration<double>(timeout) < std::chrono::duration<double>(end - now)) {
        const clock::duration rounded = std::chrono::duration_cast<clock::duration>(timeout);
        end = now + (rounded < timeout ? rounded + clock::duration(1) : rounded);
    }
    const std::chrono::nanoseconds nanos = end.time_since_epoch();
    timespec at = timespec();
    if (nanos.count() > 0) {
        typedef decltype(at.tv_sec) seconds;
        // Seconds of 32 bits end after 68 years.
        const long long last = std::numeric_limits<seconds>::max();
        at.tv_sec = static_cast<seconds>(std::min<long long>(nanos.count() / 1000000000, last));
        at.tv_nsec = static_cast<decltype(at.tv_nsec)>(nanos.count() % 1000000000);
    }
    return at;
}

// Calls `attempt` with a moment of any clock, and again if that clock is set meanwhile.
template <class Clock, class Duration, class Attempt>
bool until(const std::chrono::time_point<Clock, Duration>& end, Attempt attempt) {
    for (;;) {
        const auto now = Clock::now();
        // A moment long ago is too far away for a subtraction.
        if (attempt(end <= now ? after(Duration::zero()) : after(end - now))) {
            return true;
        }
        if (end <= Clock::now()) {
            return false;
        }
    }
}

}  // namespace detail

// ovl_mutex_t, as TimedLockable.
class mutex {
public:
    typedef ovl_mutex_t* native_handle_type;

    constexpr mutex() noexcept : raw_ OVL_MUTEX_INIT {}
    mutex(const mutex&) = delete;
    mutex& operator=(const mutex&) = delete;

    void lock() noexcept { ovl_mutex_lock(&raw_); }
    bool try_lock() noexcept { return ovl_mutex_trylock(&raw_) == 0; }
    void unlock() noexcept { ovl_mutex_unlock(&raw_); }

    template <class Rep, class Period>
    bool try_lock_for(const std::chrono::duration<Rep, Period>& timeout) {
        return attempt(detail::after(timeout));
    }
    template <class Clock, class Duration>
    bool try_lock_until(const std::chrono::time_point<Clock, Duration>& end) {
        return detail::until(end, [this](const timespec& at) { return attempt(at); });
    }

    // For statistics: see ovl_mutex_name. Without a destructor that would forget it, so the name
    // stays until the memory is named anew: give names to locks that live as long as the program.
    void name(const char* text) noexcept { ovl_mutex_name(&raw_, text); }

    native_handle_type native_handle() noexcept { return &raw_; }

private:
    bool attempt(const timespec& at) noexcept { return ovl_mutex_timedlock(&raw_, &at) == 0; }

    ovl_mutex_t raw_;
};

// As in overlock.h: the same lock.
typedef mutex spinlock;

// ovl_rwlock_t, as SharedTimedLockable.
class shared_mutex {
public:
    typedef ovl_rwlock_t* native_handle_type;

    constexpr shared_mutex() noexcept : raw_ OVL_RWLOCK_INIT {}
    shared_mutex(const shared_mutex&) = delete;
    shared_mutex& operator=(const shared_mutex&) = delete;

    void lock() noexcept { ovl_rwlock_wrlock(&raw_); }
    bool try_lock() noexcept { return ovl_rwlock_trywrlock(&raw_) == 0; }
    void unlock() noexcept { ovl_rwlock_wrunlock(&raw_); }
    void lock_shared() noexcept { ovl_rwlock_rdlock(&raw_); }
    bool try_lock_shared() noexcept { return ovl_rwlock_tryrdlock(&raw_) == 0; }
    void unlock_shared() noexcept { ovl_rwlock_rdunlock(&raw_); }

    template <class Rep, class Period>
    bool try_lock_for(const std::chrono::duration<Rep, Period>& timeout) {
        return attempt(detail::after(timeout));
    }
    template <class Clock, class Duration>
    bool try_lock_until(const std::chrono::time_point<Clock, Duration>& end) {
        return detail::until(end, [this](const timespec& at) { return attempt(at); });
    }
    template <class Rep, class Period>
    bool try_lock_shared_for(const std::chrono::duration<Rep, Period>& timeout) {
        return attempt_shared(detail::after(timeout));
    }
    template <class Clock, class Duration>
    bool try_lock_shared_until(const std::chrono::time_point<Clock, Duration>& end) {
        return detail::until(end, [this](const timespec& at) { return attempt_shared(at); });
    }

    // As mutex::name.
    void name(const char* text) noexcept { ovl_rwlock_name(&raw_, text); }

    native_handle_type native_handle() noexcept { return &raw_; }

private:
    bool attempt(const timespec& at) noexcept { return ovl_rwlock_timedwrlock(&raw_, &at) == 0; }
    bool attempt_shared(const timespec& at) noexcept { return ovl_rwlock_timedrdlock(&raw_, &at) == 0; }

    ovl_rwlock_t raw_;
};

// ovl_cond_t. May be destroyed when all waiters have been notified.
class condition_variable {
public:
    typedef ovl_cond_t* native_handle_type;

    constexpr condition_variable() noexcept : raw_ OVL_COND_INIT {}
    ~condition_variable() { ovl_cond_destroy(&raw_); }
    condition_variable(const condition_variable&) = delete;
    condition_variable& operator=(const condition_variable&) = delete;

    void notify_one() noexcept { ovl_cond_signal(&raw_); }
    void notify_all() noexcept { ovl_cond_broadcast(&raw_); }

    void wait(std::unique_lock<mutex>& lock) noexcept { ovl_cond_wait(&raw_, lock.mutex()->native_handle()); }
    template <class Predicate>
    void wait(std::unique_lock<mutex>& lock, Predicate holds) {
        while (!holds()) {
            wait(lock);
        }
    }

    template <class Rep, class Period>
    std::cv_status wait_for(std::unique_lock<mutex>& lock, const std::chrono::duration<Rep, Period>& timeout) {
        return attempt(lock, detail::after(timeout)) ? std::cv_status::no_timeout : std::cv_status::timeout;
    }
    template <class Rep, class Period, class Predicate>
    bool wait_for(std::unique_lock<mutex>& lock, const std::chrono::duration<Rep, Period>& timeout, Predicate holds) {
        const timespec at = detail::after(timeout);
        while (!holds()) {
            if (!attempt(lock, at)) {
                return holds();
            }
        }
        return true;
    }

    template <class Clock, class Duration>
    std::cv_status wait_until(std::unique_lock<mutex>& lock, const std::chrono::time_point<Clock, Duration>& end) {
        const bool notified = detail::until(end, [&](const timespec& at) { return attempt(lock, at); });
        return notified ? std::cv_status::no_timeout : std::cv_status::timeout;
    }
    template <class Clock, class Duration, class Predicate>
    bool wait_until(std::unique_lock<mutex>& lock, const std::chrono::time_point<Clock, Duration>& end, Predicate holds) {
        while (!holds()) {
            if (wait_until(lock, end) == std::cv_status::timeout) {
                return holds();
            }
        }
        return true;
    }

    native_handle_type native_handle() noexcept { return &raw_; }

private:
    bool attempt(std::unique_lock<mutex>& lock, const timespec& at) noexcept {
        return ovl_cond_timedwait(&raw_, lock.mutex()->native_handle(), &at) != ETIMEDOUT;
    }

    ovl_cond_t raw_;
};

}  // namespace overlock

#endif
