//! Studies on simulated machines, behind `overlock-lab sim sweep`, `score`, `advise` and
//! `which-lock`.
//!
//! | module | what is there |
//! |---|---|
//! | [`case`] | a simulation, and many of them at a time |
//! | [`sweep`] | a grid of simulations, on many cores and machines |
//! | [`score`] | published measurements, and how well simulations agree with them |
//! | [`advise`] | which lock for which machine and load |
//! | [`which`] | which lock for which class of machines |
//! | [`vary`] | how a figure changes with the constants of the cost model |

pub mod advise;
pub mod case;
pub mod score;
pub mod sweep;
pub mod vary;
pub mod which;
