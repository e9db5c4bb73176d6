//! The guest's requests: the ports of its `ring3` module.

/// Sleep until a kick. Microseconds, 0 for no limit.
pub const HALT: u16 = 0x500;
/// End the sleep of a vCPU, or its next.
pub const KICK: u16 = 0x504;
/// Print. The address of a length and an address, of 32 bits each.
pub const PUT: u16 = 0x508;
/// End the guest with a code.
pub const DONE: u16 = 0x50c;
