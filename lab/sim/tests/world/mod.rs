//! Machines and hosts that differ in all that matters to a lock, with slices so short that
//! preemptions are frequent.

#![allow(dead_code)] // each test uses a part of it

use std::sync::LazyLock;

use overlock_sim::Time;
use overlock_sim::engine::Setup;
use overlock_sim::host::Host;
use overlock_sim::machine::Machine;

const COSTS: &str = "hit=1.7:locked=8.3:socket=50:shared=22:across=114:hop=40:gap=12:memory=96:\
                     turn=5:jitter=0.25:ring=0.5:sibling=0.6";

/// One CPU; two; hardware threads on two sockets; four sockets.
pub static MACHINES: LazyLock<[Machine; 4]> = LazyLock::new(|| {
    [
        "sockets=1:cores_per_socket=1:threads_per_core=1:migratory=false",
        "sockets=1:cores_per_socket=2:threads_per_core=1:migratory=true",
        "sockets=2:cores_per_socket=2:threads_per_core=2:migratory=true",
        "sockets=4:cores_per_socket=2:threads_per_core=1:migratory=false:inclusive=false:\
         links=cube",
    ]
    .map(|keys| Machine::named(&format!("e5-2699v3:{COSTS}:{keys}")).expect("a machine"))
});

const SCHEDULER: &str = "latency=60us:granularity=15us:wakeup=20us:tick=10us:switch=1.5us:\
                         migration=2us:worth=10us:balance_idle=40us:balance_all=300us:\
                         placement=pack:first_poll=10us:heavy_barrier=3us";
const DEAR: &str = "halt=2us:brief=1.5us:kick=2us:kick_nobody=1.5us:wake_idle=12us:\
                    wake_busy=3.5us:awake=50us";
const CHEAP: &str = "halt=600:brief=180:kick=1us:kick_nobody=130:wake_idle=5us:wake_busy=1.5us:\
                     awake=1us:bucket_lines=2:bucket_hold=50:spins=true";
const EXITS: &str = "pause_gap=56:pause_cost=1.5us";
const PLAIN: &str = "poll=0:chores_length=0";

/// A scheduler only. One that polls for halted vCPUs, has work of its own, and has pause-loop
/// exits. Such exits with a window that does not grow. Cheap halts and kicks, and spins before
/// halts. EEVDF in the place of CFS.
pub static HOSTS: LazyLock<[Host; 5]> = LazyLock::new(|| {
    [
        format!("{DEAR}:{PLAIN}:pause_window=0"),
        format!(
            "{DEAR}:{EXITS}:pause_window=2us:pause_grow=2:poll=20us:\
             chores_every=100us:chores_length=5us"
        ),
        format!("{DEAR}:{EXITS}:{PLAIN}:pause_window=1us:pause_grow=1"),
        format!("{CHEAP}:{PLAIN}:pause_window=0"),
        format!("{DEAR}:{PLAIN}:pause_window=0:eevdf_request=15us"),
    ]
    .map(|keys| Host::named(&format!("kvm:{SCHEDULER}:{keys}")).expect("a host"))
});

pub fn setup<'a>(machine: &'a Machine, host: &'a Host, vcpus: usize, seed: u64) -> Setup<'a> {
    Setup {
        machine,
        host,
        vcpus,
        guests: 1,
        others: 0,
        seed,
        stop_after: Time::ms(200),
        windows: None,
        patience: Time::ms(200),
        trace: true,
    }
}

/// Shares its cache lines with nothing else, wherever the program's memory is.
#[repr(align(128))]
pub struct Own<T>(pub T);
