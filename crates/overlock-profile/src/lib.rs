//! Profiles of waits for locks: who waits, for whom, and why.
//!
//! A [`Profile`] is the document that `overlock profile` makes, whatever has watched the program.
//! All reports are made of it, so a document that was kept can be drawn, compared and merged later.

mod distribution;
mod document;

pub use distribution::Distribution;
pub use document::{
    Blocked, Confidence, Frame, FrameKind, Known, Lock, Lost, Parts, Process, Profile, Run, Stack,
    Sum, Thread, VERSION, Wait,
};
