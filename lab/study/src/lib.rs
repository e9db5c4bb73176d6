//! Studies on simulated machines, behind `overlock-lab sim reproduce` and `overlock-lab sim sweep`.
//!
//! | module | what is there |
//! |---|---|
//! | [`reproduce`] | published tables beside simulated ones |
//! | [`sweep`] | many simulations, on many cores and machines |

mod pool;
pub mod reproduce;
pub mod sweep;
