//! A litmus test: a few threads, each of a few instructions, and an outcome to ask about.

use std::collections::BTreeMap;

/// A value, or the address of a location.
pub type Value = i64;

/// The number of a register in its thread. Registers without a number of their own are from
/// [`ZERO`] on.
pub type Register = usize;

/// The register that reads as 0.
pub const ZERO: Register = 100;
/// The flags, as the difference of what was compared.
pub const FLAGS: Register = 101;

/// The ordering that an access has by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Order {
    /// A load that later accesses come after.
    pub acquire: bool,
    /// An acquire that an earlier release may come after.
    pub weak_acquire: bool,
    /// A store that earlier accesses come before.
    pub release: bool,
}

/// The accesses that a fence orders: those before it against those after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fence {
    /// Accesses of all kinds.
    Full,
    /// Loads or stores, as far as named, before and after it.
    Of {
        /// The accesses before it: loads, stores.
        before: (bool, bool),
        /// The accesses after it: loads, stores.
        after: (bool, bool),
    },
    /// Loads against all, and stores against stores.
    Tso,
    /// The instructions behind it are fetched again.
    Instructions,
}

/// How an instruction makes a value of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The second one.
    Swap,
    /// The sum.
    Add,
    /// The union of bits.
    Or,
    /// The first one's bits that the second does not have.
    Clear,
    /// The common bits.
    And,
    /// The bits that differ.
    Xor,
    /// The greater.
    Max,
    /// The difference.
    Subtract,
}

impl Change {
    /// The value made of `a` and `b`.
    pub fn apply(self, a: Value, b: Value) -> Value {
        match self {
            Change::Swap => b,
            Change::Add => a + b,
            Change::Or => a | b,
            Change::Clear => a & !b,
            Change::And => a & b,
            Change::Xor => a ^ b,
            Change::Max => a.max(b),
            Change::Subtract => a - b,
        }
    }
}

/// A register or a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// The register's value.
    Register(Register),
    /// This value.
    Number(Value),
}

/// One instruction. `address` has the registers whose sum is the address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Instruction {
    /// Computes in registers.
    Compute {
        /// The register for the result.
        into: Register,
        /// How it makes a value of the operands.
        change: Change,
        /// The operands.
        of: [Operand; 2],
    },
    /// Loads. An exclusive load begins a read-modify-write.
    Load {
        /// The register for the value.
        into: Register,
        /// Where.
        address: Vec<Register>,
        /// Its ordering.
        order: Order,
        /// Whether a conditional store may follow.
        exclusive: bool,
    },
    /// Stores. A conditional store ends the read-modify-write of the exclusive load before it. It
    /// succeeds: a failure is one more round of its loop.
    Store {
        /// The value's register.
        from: Register,
        /// Where.
        address: Vec<Register>,
        /// Its ordering.
        order: Order,
        /// For a conditional store, the register that says 0.
        status: Option<Register>,
    },
    /// One instruction that reads, changes and writes.
    Modify {
        /// The register for the old value.
        into: Register,
        /// The operand's register.
        from: Register,
        /// Where.
        address: Vec<Register>,
        /// How the new value is made.
        change: Change,
        /// Its ordering.
        order: Order,
    },
    /// One instruction that compares, and writes where the values are equal.
    Exchange {
        /// The register of the expected value, and for the old one.
        expected: Register,
        /// The register of the new value.
        new: Register,
        /// Where.
        address: Vec<Register>,
        /// Its ordering.
        order: Order,
    },
    /// A fence.
    Fence(Fence),
    /// Jumps forward if the register's being zero is as said, or in any case.
    Branch {
        /// The register, and whether it jumps at zero; it may be that of a comparison.
        condition: Option<(Operand, Operand, bool)>,
        /// The label.
        to: String,
    },
    /// The target of branches.
    Label(String),
}

/// Whose memory model the test is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine {
    /// AArch64: Armv8.0 to 8.1 and later.
    Arm,
    /// RISC-V with its weak memory order.
    RiscV,
}

/// An equation of the outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Equation {
    /// The register of a thread has a value at its end.
    Register(usize, Register, Value),
    /// A location has a value at the end of all.
    Location(String, Value),
}

/// A litmus test.
#[derive(Clone, Debug)]
pub struct Test {
    /// The machine.
    pub machine: Machine,
    /// Its name.
    pub name: String,
    /// The names of the locations.
    pub locations: Vec<String>,
    /// Their initial values, where these are not 0.
    pub initial: BTreeMap<String, Value>,
    /// Registers that hold something at the beginning.
    pub registers: BTreeMap<(usize, Register), Value>,
    /// The threads.
    pub threads: Vec<Vec<Instruction>>,
    /// The outcome to ask about: all of these.
    pub outcome: Vec<Equation>,
}

/// The address of location `index`.
pub fn address(index: usize) -> Value {
    (index as Value + 1) << 32
}

/// The location at `address`.
pub fn location(address: Value) -> usize {
    assert!(
        address > 0 && address & 0xffff_ffff == 0,
        "an access to {address:#x}, which is no location"
    );
    (address >> 32) as usize - 1
}
