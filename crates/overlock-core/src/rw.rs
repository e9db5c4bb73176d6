//! Reader-writer locks.
