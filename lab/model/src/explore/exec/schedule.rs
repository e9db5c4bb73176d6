//! Which thread of an execution runs next.

use super::super::strategy::Question;
use super::{Execution, State, Thread};
use crate::failure::Kind;

impl Thread {
    pub(super) fn take_expired(&mut self) -> bool {
        std::mem::take(&mut self.expired)
    }

    fn deadline(&self) -> Option<u64> {
        match self.state {
            State::Watching(until) | State::Halted(_, until) => until,
            _ => None,
        }
    }
}

impl Execution {
    fn wake_paused(&mut self) {
        for thread in &mut self.threads {
            if thread.state == State::Paused {
                thread.state = State::Ready;
            }
        }
    }

    /// A word was stored to: those that wait for it go on, and those that let others come first.
    pub(super) fn wake_watchers(&mut self, key: u32) {
        self.wake_paused();
        for thread in &mut self.threads {
            if matches!(thread.state, State::Watching(_))
                && thread.watch.iter().any(|(at, _)| at.key == key)
            {
                thread.state = State::Ready;
            }
        }
    }

    /// Chooses who runs next, and makes it the current thread; whether that is another one than
    /// before. `stay`: the current thread could go on.
    pub(super) fn schedule(&mut self, stay: bool) -> bool {
        let before = self.current;
        self.leaving = self.threads[before].yielder;
        self.steps += 1;
        if self.steps > self.rules.steps {
            self.fail(Kind::NoProgress);
            return true;
        }
        if self.expire_by_chance() {
            return self.current != before;
        }
        self.options.clear();
        if !self
            .threads
            .iter()
            .any(|thread| thread.state == State::Ready)
        {
            self.wake_paused();
        }
        if stay {
            self.options.push(before);
        }
        for (index, thread) in self.threads.iter().enumerate() {
            if thread.state == State::Ready && (index != before || !stay) {
                self.options.push(index);
            }
        }
        if self.options.is_empty() {
            // Nobody can go on: time passes until the next one gives up waiting.
            let next = (0..self.threads.len())
                .filter_map(|index| Some((self.threads[index].deadline()?, index)))
                .min();
            match next {
                Some((_, index)) => self.expire(index),
                None => {
                    self.fail(Kind::Deadlock);
                    return true;
                }
            }
        } else {
            let answer = self.choose(Question::Thread { stay }, self.options.len());
            self.current = self.options[answer];
        }
        self.current != before
    }

    /// A thread's time may run out although others could go on, or it may wake for no reason.
    fn expire_by_chance(&mut self) -> bool {
        self.options.clear();
        for (index, thread) in self.threads.iter().enumerate() {
            let restless = self.rules.restless && matches!(thread.state, State::Halted(..));
            if thread.deadline().is_some() || restless {
                self.options.push(index);
            }
        }
        if self.options.is_empty()
            || !self
                .threads
                .iter()
                .any(|thread| thread.state == State::Ready)
        {
            return false;
        }
        match self.choose(Question::Chance, self.options.len() + 1) {
            0 => false,
            answer => {
                let index = self.options[answer - 1];
                self.expire(index);
                true
            }
        }
    }

    fn expire(&mut self, index: usize) {
        let thread = &mut self.threads[index];
        self.now = self.now.max(thread.deadline().unwrap_or(0));
        thread.state = State::Ready;
        thread.expired = true;
        self.current = index;
    }

    /// A thread has ended: those that wait for it go on. Whether all have ended.
    pub(super) fn ended(&mut self) -> bool {
        let gone = self.current;
        self.threads[gone].state = State::Ended;
        for thread in &mut self.threads {
            if thread.state == State::Joining(gone) {
                thread.state = State::Ready;
            }
        }
        self.threads
            .iter()
            .all(|thread| thread.state == State::Ended)
    }
}
