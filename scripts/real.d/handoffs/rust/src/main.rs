//! A thread hands work to others by well-known crates:
//! `handoffs crossbeam|rayon|tokio|spawn-blocking SECONDS`.

mod trips;

use crossbeam_channel::bounded;
use std::thread;
use tokio::runtime::Builder;
use tokio::sync::mpsc::channel;
use trips::Trips;

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let seconds = words[2].parse().expect("a number of seconds");
    match words[1].as_str() {
        "crossbeam" => crossbeam(seconds),
        "rayon" => rayon(seconds),
        "tokio" => tokio(seconds),
        "spawn-blocking" => spawn_blocking(seconds),
        other => panic!("there is no way called {other}"),
    }
}

/// A channel for one number each way, between two threads.
fn crossbeam(seconds: u64) {
    let (ask, questions) = bounded::<u64>(1);
    let (answer, answers) = bounded(1);
    let thread = thread::spawn(move || {
        let mut count = 0;
        for number in questions {
            answer.send(number).expect("the asker is there");
            count += 1;
        }
        count
    });
    let mut trips = Trips::new(seconds);
    for number in &mut trips {
        ask.send(number).expect("the thread is there");
        assert_eq!(answers.recv(), Ok(number));
    }
    drop(ask);
    trips.end(thread.join().expect("the thread ends well"));
}

/// Two short calls in a pool of two threads, from a thread outside it.
fn rayon(seconds: u64) {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(2)
        .build()
        .expect("a pool");
    let mut trips = Trips::new(seconds);
    let mut joins = 0;
    for number in &mut trips {
        let both = pool.install(|| rayon::join(|| number, || number + 1));
        assert_eq!(both, (number, number + 1));
        joins += 1;
    }
    trips.end(joins);
}

/// A channel for one number each way, between the main task and a task of two workers.
fn tokio(seconds: u64) {
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let (ask, mut questions) = channel::<u64>(1);
        let (answer, mut answers) = channel(1);
        let task = tokio::spawn(async move {
            let mut count = 0;
            while let Some(number) = questions.recv().await {
                answer.send(number).await.expect("the asker is there");
                count += 1;
            }
            count
        });
        let mut trips = Trips::new(seconds);
        for number in &mut trips {
            ask.send(number).await.expect("the task is there");
            assert_eq!(answers.recv().await, Some(number));
        }
        drop(ask);
        trips.end(task.await.expect("the task ends well"));
    });
}

/// Calls that may block, which a thread of the event loop leaves to another thread.
fn spawn_blocking(seconds: u64) {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let mut trips = Trips::new(seconds);
        let mut answers = 0;
        for number in &mut trips {
            let answer = tokio::task::spawn_blocking(move || number).await;
            assert_eq!(answer.expect("the call ends well"), number);
            answers += 1;
        }
        trips.end(answers);
    });
}
