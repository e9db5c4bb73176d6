//! Profiles of waits for locks: who waits, for whom, and why.
//!
//! A [`Profile`] is the document that `overlock profile` makes, whatever has watched the program.
//! All reports are made of it, so a document that was kept can be drawn, compared and merged later.
//!
//! | module | the file |
//! |---|---|
//! | [`json`] | the document itself; [`Profile::read`] reads it |
//! | [`html`] | a page with all pictures, for a browser |
//! | [`flame`] | a flame graph as SVG |
//! | [`folded`] | folded stacks |
//! | [`pprof`] | for `go tool pprof`, speedscope, Pyroscope, Parca |
//! | [`firefox`] | for the Firefox Profiler |
//! | [`perfetto`] | for Perfetto |
//!
//! [`diff`] compares profiles, [`Merger`] makes one of several, and [`advice`] says what to do.

pub mod advice;
mod brief;
pub mod diff;
mod distribution;
mod document;
pub mod firefox;
pub mod flame;
pub mod folded;
pub mod html;
mod interner;
pub mod json;
mod key;
mod merge;
pub mod perfetto;
pub mod pprof;
mod read;
mod view;

pub use brief::brief;
pub use distribution::Distribution;
pub use document::{
    Blocked, Confidence, Frame, FrameKind, Known, Lock, Lost, Parts, Process, Profile, Run, Stack,
    Sum, Thread, VERSION, Wait,
};
pub use interner::Interner;
pub use merge::Merger;
pub use read::Unreadable;
pub use view::{By, Shown, in_sentence, name_or_address, plain};

/// The examples of the crate's page are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
