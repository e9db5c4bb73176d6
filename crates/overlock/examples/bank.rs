//! Transfers between accounts: each takes two locks, in any order, and none deadlocks.
//!
//! ```text
//! cargo run --release --example bank -- --bench
//! ```

mod common;

use std::thread;

use overlock::ww_mutex::{self, Class, Error, WwMutex};

static ACCOUNTS: Class = Class::new();

const NUMBER: usize = 8;
const BALANCE: i64 = 1000;

/// Moves `sum`, if `from` has it.
fn transfer(accounts: &[WwMutex<i64>], from: usize, to: usize, sum: i64) -> Result<bool, Error> {
    ww_mutex::acquire(&ACCOUNTS, |context| {
        // All locks first, then the changes: an attempt may begin again until it has them.
        let mut from = context.lock(&accounts[from])?;
        let mut to = context.lock(&accounts[to])?;
        let suffices = *from >= sum;
        if suffices {
            *from -= sum;
            *to += sum;
        }
        Ok(suffices)
    })
}

/// The same with std: the locks have to be taken in one order by all.
fn transfer_in_order(accounts: &[std::sync::Mutex<i64>], from: usize, to: usize, sum: i64) {
    let (first, second) = (from.min(to), from.max(to));
    let mut first_balance = accounts[first].lock().unwrap();
    let mut second_balance = accounts[second].lock().unwrap();
    let (from_balance, to_balance) = if from < to {
        (&mut *first_balance, &mut *second_balance)
    } else {
        (&mut *second_balance, &mut *first_balance)
    };
    if *from_balance >= sum {
        *from_balance -= sum;
        *to_balance += sum;
    }
}

/// Four threads make transfers between different accounts.
fn trade(transfer: impl Fn(usize, usize, i64) + Sync) {
    thread::scope(|scope| {
        for thread in 0..4 {
            let transfer = &transfer;
            scope.spawn(move || {
                for turn in 0..5000 {
                    let from = (turn * 3 + thread) % NUMBER;
                    let to = (from + 1 + turn % (NUMBER - 1)) % NUMBER;
                    transfer(from, to, (turn % 10) as i64);
                }
            });
        }
    });
}

fn main() {
    let accounts = [(); NUMBER].map(|()| WwMutex::new(&ACCOUNTS, BALANCE));
    let move_ours = |from, to, sum| _ = transfer(&accounts, from, to, sum).expect("two accounts");
    trade(move_ours);
    assert_eq!(transfer(&accounts, 3, 3, 1), Err(Error::AlreadyHeld));

    if common::wants_bench() {
        let theirs = [(); NUMBER].map(|()| std::sync::Mutex::new(BALANCE));
        common::compare(
            ["WwMutex", "std's Mutex, in the order of the accounts"],
            || trade(move_ours),
            || trade(|from, to, sum| transfer_in_order(&theirs, from, to, sum)),
        );
    }
    let total: i64 = accounts.map(WwMutex::into_inner).iter().sum();
    assert_eq!(total, NUMBER as i64 * BALANCE);
    println!("the accounts have {total} together");
}
