//! The records that the programs in the kernel write: `bpf/waits.h` has the layouts.

/// A time without a CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Off {
    pub tid: u32,
    pub out_ns: u64,
    /// 0 if the thread could run all the time.
    pub wake_ns: u64,
    /// 0 as long as it has no CPU.
    pub in_ns: u64,
    /// Negative outside of a system call.
    pub syscall: i32,
    pub leave: Leave,
}

/// Why a thread left its CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Leave {
    #[default]
    Preempted,
    Blocked,
    Stopped,
}

/// A time without a CPU within a wait for a futex.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Wait {
    pub off: Off,
    pub address: u64,
    /// The stack; 0 if it is not known.
    pub key: u64,
    pub waker_key: u64,
    /// The thread that woke it by a futex call, or 0.
    pub waker: u32,
    pub operation: u32,
    /// From four words before the futex on.
    pub words: [u32; WORDS],
}

pub const WORDS: usize = 12;
pub const WORDS_BEFORE: usize = 4;

impl Wait {
    /// Whether it began before the look.
    pub fn is_from_before(&self) -> bool {
        self.key == u64::from(self.off.tid) << 32 | 1
    }

    /// The registers of one from before, which stand in place of the words: the instruction, the
    /// stack, the frame and the return address.
    pub fn registers(&self) -> [u64; 4] {
        [0, 2, 4, 6].map(|at| {
            let [first, second] = [self.words[at], self.words[at + 1]].map(u32::to_ne_bytes);
            u64::from_ne_bytes([first, second].concat().try_into().expect("eight bytes"))
        })
    }

    /// The word at a distance from the futex.
    pub fn word(&self, distance: isize) -> u32 {
        let at = WORDS_BEFORE.checked_add_signed(distance);
        at.and_then(|at| self.words.get(at)).copied().unwrap_or(0)
    }
}

/// A stack as it was, and what led there.
#[derive(Clone, Debug, PartialEq)]
pub struct Copied {
    pub key: u64,
    pub ip: u64,
    pub sp: u64,
    pub bp: u64,
    /// The return address where the architecture keeps it in a register.
    pub lr: u64,
    /// From `sp` on.
    pub bytes: Vec<u8>,
}

/// One record.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    Stack(Copied),
    Off(Off),
    Wait(Wait),
}

/// The size of a wait's record, which is a value of the map of threads without a CPU too.
pub const WAIT_SIZE: usize = 120;

struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*field)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_ne_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_ne_bytes)
    }
}

impl Record {
    /// Reads one.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let mut fields = Fields(bytes);
        match fields.u32()? {
            1 => stack(&mut fields).map(Self::Stack),
            2 => off(&mut fields).map(Self::Off),
            3 => wait(&mut fields).map(Self::Wait),
            _ => None,
        }
    }
}

fn stack(fields: &mut Fields<'_>) -> Option<Copied> {
    fields.u32()?;
    let [key, ip, sp, bp, lr, length] = [(); 6].map(|()| fields.u64());
    Some(Copied {
        key: key?,
        ip: ip?,
        sp: sp?,
        bp: bp?,
        lr: lr?,
        bytes: fields.0.get(..usize::try_from(length?).ok()?)?.to_vec(),
    })
}

fn off(fields: &mut Fields<'_>) -> Option<Off> {
    Some(Off {
        tid: fields.u32()?,
        out_ns: fields.u64()?,
        wake_ns: fields.u64()?,
        in_ns: fields.u64()?,
        syscall: fields.u32()?.cast_signed(),
        leave: match fields.u32()? {
            0 => Leave::Preempted,
            1 => Leave::Blocked,
            _ => Leave::Stopped,
        },
    })
}

fn wait(fields: &mut Fields<'_>) -> Option<Wait> {
    let mut wait = Wait {
        off: off(fields)?,
        address: fields.u64()?,
        key: fields.u64()?,
        waker_key: fields.u64()?,
        waker: fields.u32()?,
        operation: fields.u32()?,
        words: [0; WORDS],
    };
    for word in &mut wait.words {
        *word = fields.u32()?;
    }
    Some(wait)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_as_they_are_written() {
        let mut bytes = Vec::new();
        let numbers = |bytes: &mut Vec<u8>, numbers: &[u64]| {
            numbers
                .iter()
                .for_each(|number| bytes.extend(number.to_ne_bytes()));
        };
        bytes.extend(3_u32.to_ne_bytes());
        bytes.extend(7_u32.to_ne_bytes());
        numbers(&mut bytes, &[10, 20, 30]);
        bytes.extend((-1_i32).to_ne_bytes());
        bytes.extend(1_u32.to_ne_bytes());
        numbers(&mut bytes, &[0x1000, 5, 6]);
        for word in [8_u32, 128].into_iter().chain(0..12) {
            bytes.extend(word.to_ne_bytes());
        }
        assert_eq!(bytes.len(), WAIT_SIZE);
        let Some(Record::Wait(wait)) = Record::read(&bytes) else {
            panic!("a wait");
        };
        assert_eq!((wait.off.tid, wait.off.syscall), (7, -1));
        assert_eq!((wait.waker, wait.operation, wait.key), (8, 128, 5));
        assert_eq!((wait.word(0), wait.word(-4), wait.word(9)), (4, 0, 0));
        assert_eq!(Record::read(&bytes[..WAIT_SIZE - 1]), None);
        bytes[0] = 2;
        assert_eq!(Record::read(&bytes), Some(Record::Off(wait.off)));
        bytes[0] = 9;
        assert_eq!(Record::read(&bytes), None);
    }
}
