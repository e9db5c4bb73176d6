//! Locks of the program itself: their notes, and what acquisitions and releases count.

use core::fmt::Write;
use core::panic::Location;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use overlock_shared::{ObjectKind, Path};

use crate::figures::{self, Class};
use crate::flight::{self, Holder};
use crate::{Site, Spot, Wait, clock, mode, record, sampling, single, threads};

/// How many exclusive acquisitions are recorded after a wait, so that the next waiter knows its
/// holder's callers.
const WATCHED: u32 = 64;

/// The owner where an acquisition is handed on from thread to thread. No thread has that number.
const ANY: u32 = u32::MAX;

/// The notes of a lock. The owner writes them, but for the classes.
#[derive(Debug)]
pub struct State {
    /// The numbers of the classes for exclusive and for shared acquisitions; 0 before the first.
    classes: [AtomicU32; 2],
    /// The number of exclusive acquisitions.
    count: AtomicU32,
    /// The thread that holds the lock exclusively; 0 for none.
    owner: AtomicU32,
    /// The lower half of its call site; 0 where that is not known.
    site: AtomicU32,
    /// The number of its flight; 0 for none.
    flight: AtomicU32,
    /// The count up to which acquisitions are recorded.
    watched: AtomicU32,
    /// When it acquired the lock; 0 where that is not measured.
    began_ns: AtomicU64,
}

/// How a lock is called in reports.
#[derive(Clone, Copy, Debug)]
pub enum Name {
    /// By a name of the program's.
    Given(&'static str),
    /// By the line on which it was made.
    Line(&'static Location<'static>),
    /// Its [state](State::name) has the name.
    Noted,
}

/// A lock of the program.
#[derive(Clone, Copy, Debug)]
pub struct Lock<'a> {
    pub state: &'a State,
    pub object: usize,
    /// Of the acquisition.
    pub kind: ObjectKind,
    pub name: Name,
}

/// An acquisition that begins.
#[derive(Debug)]
pub struct Begun {
    class: Option<&'static Class>,
    /// The spot at which it is recorded.
    spot: Option<Spot>,
    /// That it counts for so many.
    weight: Option<u32>,
    /// That it counts for so many which bypass waiters.
    unfair: Option<u32>,
    is_contended: bool,
    /// A place in the caller's code; 0 where that is not known.
    site: Site,
}

/// A wait.
#[derive(Debug)]
pub struct Waiting {
    class: Option<&'static Class>,
    wait: Option<Wait>,
    spot_site: u32,
    began_ns: u64,
}

impl State {
    pub const fn new() -> Self {
        State {
            classes: [const { AtomicU32::new(0) }; 2],
            count: AtomicU32::new(0),
            owner: AtomicU32::new(0),
            site: AtomicU32::new(0),
            flight: AtomicU32::new(0),
            watched: AtomicU32::new(0),
            began_ns: AtomicU64::new(0),
        }
    }

    /// Gives the lock a name for acquisitions of this kind.
    pub fn name(&self, kind: ObjectKind, name: &[u8]) {
        // A lock without room is not looked for again.
        let number = match figures::number(name, kind) {
            0 => u32::MAX,
            number => number,
        };
        self.class_of(kind).store(number, Relaxed);
    }

    fn class_of(&self, kind: ObjectKind) -> &AtomicU32 {
        &self.classes[usize::from(kind == ObjectKind::Read)]
    }

    /// Whether the acquisition after `count` others is recorded for the sake of later waiters.
    fn is_watched(&self, count: u32) -> bool {
        let until = self.watched.load(Relaxed);
        until.wrapping_sub(count).wrapping_sub(1) < WATCHED
    }

    /// Whether the calling thread holds the lock exclusively, as far as that was counted. An
    /// acquisition that is handed on is that of the thread which releases it.
    fn is_mine(&self) -> bool {
        let owner = self.owner.load(Relaxed);
        owner != 0 && (owner == ANY || owner == threads::id())
    }

    /// The calling thread has acquired the lock, and may hand the acquisition on to another one.
    pub fn is_anybodys(&self) {
        self.owner.store(ANY, Relaxed);
    }

    /// Whether the acquisition may be handed on.
    pub fn is_sent(&self) -> bool {
        self.owner.load(Relaxed) == ANY
    }

    /// As a new one: the lock is gone.
    pub fn reset(&self) {
        self.forget();
        let classes = self.classes.iter();
        for word in classes.chain([&self.count, &self.owner, &self.site, &self.watched]) {
            word.store(0, Relaxed);
        }
    }

    /// The calling thread has the lock again, after a [pause](Lock::pause). That is not counted.
    pub fn owns_again(&self, site: u32) {
        self.own(site);
    }

    fn own(&self, site: u32) {
        if self.began_ns.load(Relaxed) != 0 {
            self.forget();
        }
        let count = self.count.load(Relaxed);
        self.count.store(count.wrapping_add(1), Relaxed);
        self.owner.store(threads::id(), Relaxed);
        self.site.store(site, Relaxed);
    }
}

impl State {
    /// The end of the last owner's acquisition was not seen: its guard was forgotten, or counting
    /// was off.
    #[cold]
    fn forget(&self) {
        self.began_ns.store(0, Relaxed);
        flight::end(self.flight.swap(0, Relaxed));
    }
}

impl Default for State {
    fn default() -> Self {
        Self::new()
    }
}

impl Name {
    /// Calls `of` with the text.
    fn with<T>(self, of: impl FnOnce(&[u8]) -> T) -> T {
        match self {
            Name::Given(text) => of(text.as_bytes()),
            Name::Line(line) => {
                let mut text = Text {
                    bytes: [0; Path::MAX],
                    length: 0,
                };
                // A path that is too long is cut.
                let _ = write!(text, "of {}:{}", line.file(), line.line());
                of(&text.bytes[..text.length])
            }
            Name::Noted => of(&[]),
        }
    }
}

struct Text {
    bytes: [u8; Path::MAX],
    length: usize,
}

impl Write for Text {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        let rest = &mut self.bytes[self.length..];
        let length = text.len().min(rest.len());
        rest[..length].copy_from_slice(&text.as_bytes()[..length]);
        self.length += length;
        Ok(())
    }
}

impl Lock<'_> {
    fn class(&self) -> Option<&'static Class> {
        let number = self.state.class_of(self.kind);
        if number.load(Relaxed) == 0 && !matches!(self.name, Name::Noted) {
            self.name.with(|name| self.state.name(self.kind, name));
        }
        figures::class(number.load(Relaxed))
    }

    fn is_shared(&self) -> bool {
        self.kind == ObjectKind::Read
    }

    fn spot(&self, class: Option<&'static Class>, frame: usize) -> Option<Spot> {
        let (class, true) = (class?, mode::has_table()) else {
            return None;
        };
        crate::takes_lock();
        let mut buffer = [0; Path::MAX];
        let name = class.text(&mut buffer);
        Some(crate::table::keeping_errno(|| {
            Spot::named(self.object, self.kind, name, frame)
        }))
    }

    /// The calling thread is about to acquire the lock, for which others wait or not. `frame` is
    /// the address of a variable in its function, and `site` one of its code, or 0.
    #[inline(never)]
    pub fn begins(&self, is_contended: bool, frame: usize, site: Site) -> Begun {
        let class = self.class();
        let count = match self.is_shared() {
            true => class.map_or(0, |class| class.count(threads::id())),
            false => self.state.count.load(Relaxed),
        };
        let is_watched = !self.is_shared() && self.state.is_watched(count);
        // One that is watched counts for nothing: it is not chosen by chance.
        let weight = sampling::weight(count, !self.is_shared()).or(is_watched.then_some(0));
        let unfair = is_contended
            .then(|| sampling::unfair_weight(count, !self.is_shared()))
            .flatten();
        let is_recorded = weight.is_some() || unfair.is_some();
        let spot = is_recorded.then(|| self.spot(class, frame)).flatten();
        Begun {
            class,
            spot,
            weight,
            unfair,
            is_contended,
            site,
        }
    }

    /// It has acquired the lock without a wait.
    #[inline(never)]
    pub fn taken(&self, begun: Begun) {
        if let Some(class) = begun.class {
            class.acquired(threads::id());
        }
        if let (Some(spot), Some(weight)) = (&begun.spot, begun.unfair) {
            record::unfair(spot, weight);
        }
        if begun.is_contended && mode::is_profiled() && !self.is_shared() {
            single::takes(self.object);
        }
        if self.is_shared() {
            if let (Some(spot), Some(weight)) = (&begun.spot, begun.weight) {
                record::sample_shared(spot, weight);
            }
            return;
        }
        let site = begun.spot.map_or(begun.site, |spot| spot.site) as u32;
        self.state.own(site);
        if let Some(weight) = begun.weight {
            self.flies(begun.spot.map_or(0, |spot| record::sample(spot, weight)));
        }
    }

    /// The acquisition is recorded until its release.
    fn flies(&self, flight: u32) {
        self.state.began_ns.store(clock::now(), Relaxed);
        self.state.flight.store(flight, Relaxed);
    }

    /// It has not, and waits.
    #[inline(never)]
    pub fn waits(&self, begun: Begun, frame: usize) -> Waiting {
        let spot = begun.spot.or_else(|| self.spot(begun.class, frame));
        let state = self.state;
        let site = state.site.load(Relaxed);
        let holder = Holder {
            tid: match state.owner.load(Relaxed) {
                ANY => 0,
                tid => tid,
            },
            site,
            stack: flight::stack(state.flight.load(Relaxed), site),
        };
        let count = state.count.load(Relaxed);
        Waiting {
            class: begun.class,
            spot_site: spot.map_or(begun.site, |spot| spot.site) as u32,
            began_ns: clock::now(),
            wait: spot.map(|spot| Wait::begin(spot, holder, count)),
        }
    }

    /// It has the lock after a wait.
    #[inline(never)]
    pub fn over(&self, waiting: Waiting) {
        let waited = clock::now().saturating_sub(waiting.began_ns);
        let state = self.state;
        let count = state.count.load(Relaxed);
        if let Some(class) = waiting.class {
            class.acquired(threads::id());
            class.waited(waited);
        }
        if self.is_shared() {
            if let Some(wait) = waiting.wait {
                wait.over_shared(count);
            }
            return;
        }
        state.own(waiting.spot_site);
        // The count of all, this acquisition included.
        let all = count.wrapping_add(1);
        self.flies(waiting.wait.map_or(0, |wait| wait.over(all).flight));
        state.watched.store(all.wrapping_add(WATCHED), Relaxed);
    }

    /// It gives up.
    #[inline(never)]
    pub fn gave_up(&self, waiting: Waiting) {
        if let Some(class) = waiting.class {
            class.waited(clock::now().saturating_sub(waiting.began_ns));
            class.gives_up();
        }
        if let Some(wait) = waiting.wait {
            wait.gave_up();
        }
    }

    /// It releases the lock by `release`. Nothing of the lock is accessed after that.
    #[inline]
    pub fn releases<T>(&self, release: impl FnOnce() -> T) -> T {
        let ends = match self.state.is_mine() {
            true => self.ends(),
            false => None,
        };
        let result = release();
        if let Some(held) = ends {
            held.record();
        }
        result
    }

    /// The calling thread's exclusive acquisition ends.
    fn ends(&self) -> Option<Held> {
        let state = self.state;
        if mode::is_profiled() {
            single::releases(self.object, Some(state.count.load(Relaxed)), false);
        }
        state.owner.store(0, Relaxed);
        let began_ns = state.began_ns.load(Relaxed);
        if began_ns == 0 {
            return None;
        }
        state.began_ns.store(0, Relaxed);
        let flight = state.flight.load(Relaxed);
        state.flight.store(0, Relaxed);
        Some(Held {
            class: figures::class(state.class_of(self.kind).load(Relaxed)),
            flight,
            ns: clock::now().saturating_sub(began_ns),
        })
    }

    /// The calling thread's acquisition ends for a while. Returns its call site; `None` if it was
    /// not exclusive, or not counted.
    pub fn pause(&self) -> Option<u32> {
        let site = (self.state.is_mine()).then(|| self.state.site.load(Relaxed));
        self.releases(|| ());
        site
    }
}

/// An acquisition that has ended.
#[derive(Debug)]
struct Held {
    class: Option<&'static Class>,
    flight: u32,
    ns: u64,
}

impl Held {
    #[cold]
    fn record(self) {
        if self.flight != 0 {
            record::released_after(self.flight, self.ns);
        }
        if let Some(class) = self.class {
            class.held(self.ns);
        }
    }
}

/// An address in the function that calls this, where it is optimised; 0 elsewhere: there it would
/// be one of a function of the lock.
#[inline(always)]
pub fn here() -> Site {
    let is_known = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));
    if cfg!(debug_assertions) || !is_known {
        return 0;
    }
    #[allow(unused_mut, unused_assignments)] // without an instruction for it
    let mut address = 0;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: an address, and no more.
    unsafe {
        core::arch::asm!("lea {}, [rip]", out(reg) address, options(nomem, nostack, preserves_flags));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: an address, and no more.
    unsafe {
        core::arch::asm!("adr {}, .", out(reg) address, options(nomem, nostack, preserves_flags));
    }
    address
}
