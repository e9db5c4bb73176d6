//! Payments between accounts: which lock is the second is known only with the first one held, so
//! they have no order, and none deadlocks. The accounts are seldom contended, so their class is
//! optimistic. Beside it is what std has for that: attempts, which may fail for ever. With two
//! locks and as little to do as here they are faster.
//!
//! ```text
//! cargo run --release --example bank -- --bench
//! ```

mod common;

use std::thread;

use overlock::ww_mutex::{self, Class, Error, WwMutex};

static ACCOUNTS: Class = Class::optimistic();

const NUMBER: usize = 8;
const BALANCE: i64 = 1000;

struct Account {
    balance: i64,
    /// The account that it pays next.
    payee: usize,
}

impl Account {
    fn new(number: usize) -> Self {
        Account {
            balance: BALANCE,
            payee: (number + 1) % NUMBER,
        }
    }

    /// Pays `sum`, if the account has it.
    fn pay(&mut self, number: usize, payee: &mut Account, sum: i64) {
        if self.balance >= sum {
            self.balance -= sum;
            payee.balance += sum;
        }
        self.payee = (self.payee + 1) % NUMBER;
        if self.payee == number {
            self.payee = (number + 1) % NUMBER;
        }
    }
}

fn pay(accounts: &[WwMutex<Account>], number: usize, sum: i64) -> Result<(), Error> {
    ww_mutex::acquire(&ACCOUNTS, |context| {
        // All locks first, then the changes: an attempt may begin again until it has them.
        let mut payer = context.lock(&accounts[number])?;
        let mut payee = context.lock(&accounts[payer.payee])?;
        payer.pay(number, &mut payee, sum);
        Ok(())
    })
}

/// The same with std: try the second lock, and give up the first one if it is held.
fn pay_by_attempts(accounts: &[std::sync::Mutex<Account>], number: usize, sum: i64) {
    loop {
        let mut payer = accounts[number].lock().unwrap();
        if let Ok(mut payee) = accounts[payer.payee].try_lock() {
            return payer.pay(number, &mut payee, sum);
        }
        drop(payer);
        thread::yield_now();
    }
}

/// Four threads make payments.
fn trade(pay: impl Fn(usize, i64) + Sync) {
    thread::scope(|scope| {
        for thread in 0..4 {
            let pay = &pay;
            scope.spawn(move || {
                for turn in 0..5000 {
                    pay((turn * 3 + thread) % NUMBER, (turn % 10) as i64);
                }
            });
        }
    });
}

fn main() {
    let new = |number| WwMutex::new(&ACCOUNTS, Account::new(number));
    let accounts: [_; NUMBER] = std::array::from_fn(new);
    let pay = |number, sum| pay(&accounts, number, sum).expect("two accounts");
    trade(pay);

    if common::wants_bench() {
        let new = |number| std::sync::Mutex::new(Account::new(number));
        let theirs: [_; NUMBER] = std::array::from_fn(new);
        common::compare(
            ["WwMutex", "std's Mutex, tried"],
            || trade(pay),
            || trade(|number, sum| pay_by_attempts(&theirs, number, sum)),
        );
    }
    let balances = accounts.map(|account| account.into_inner().balance);
    let total: i64 = balances.iter().sum();
    assert_eq!(total, NUMBER as i64 * BALANCE);
    println!("the accounts have {total} together");
}
