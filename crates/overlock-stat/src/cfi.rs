//! Call frame information: how to restore the registers of a caller, as `.eh_frame` has it for
//! each address of code (DWARF 5, section 6.4, and the Linux Standard Base, section 10.6).

/// Registers with a number below it are followed. The last on x86-64 is the return address.
pub const REGISTERS: usize = if cfg!(target_arch = "aarch64") {
    32
} else {
    17
};

/// The stack pointer's number.
pub const SP: usize = if cfg!(target_arch = "aarch64") { 31 } else { 7 };

/// The frame pointer's number.
pub const FP: usize = if cfg!(target_arch = "aarch64") { 29 } else { 6 };

/// How a caller's register is found: at an offset from the frame address, but for two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule(pub i32);

impl Rule {
    /// The callee has left it alone.
    pub const SAME: Rule = Rule(i32::MIN);
    /// It is lost, or is found in another way.
    pub const UNKNOWN: Rule = Rule(i32::MIN + 1);
}

/// The rules at an address.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The frame address is this register and an offset.
    pub register: usize,
    pub offset: i64,
    /// It is rather the word that is there: a frame of a realigned stack.
    pub is_loaded: bool,
    pub rules: [Rule; REGISTERS],
}

impl Row {
    const NONE: Row = Row {
        register: usize::MAX,
        offset: 0,
        is_loaded: false,
        rules: [Rule::SAME; REGISTERS],
    };

    /// The frame address; `load` loads a word of the stack.
    pub fn frame(
        &self,
        registers: &[usize; REGISTERS],
        load: impl Fn(usize) -> Option<usize>,
    ) -> Option<usize> {
        let base = *registers.get(self.register)?;
        let at = base.wrapping_add_signed(self.offset as isize);
        match self.is_loaded {
            true => load(at),
            false => Some(at),
        }
    }

    fn set(&mut self, register: u64, rule: Rule) {
        // Others, as those of vectors, are no caller's that is looked at.
        if let Some(of) = self.rules.get_mut(register as usize) {
            *of = rule;
        }
    }
}

/// Bytes that are read in order.
#[derive(Clone, Copy)]
struct Bytes {
    at: *const u8,
    end: *const u8,
}

impl Bytes {
    /// # Safety
    ///
    /// So many bytes are there, for as long as this is used.
    unsafe fn new(at: *const u8, length: usize) -> Self {
        Bytes {
            at,
            end: at.wrapping_add(length),
        }
    }

    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        if (self.end.addr()).saturating_sub(self.at.addr()) < N {
            return None;
        }
        // SAFETY: the creator's promise, and within the length.
        let bytes = unsafe { self.at.cast::<[u8; N]>().read_unaligned() };
        self.at = self.at.wrapping_add(N);
        Some(bytes)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take::<1>().map(|[byte]| byte)
    }

    fn word(&mut self) -> Option<u32> {
        self.take().map(u32::from_ne_bytes)
    }

    fn uleb(&mut self) -> Option<u64> {
        let (mut value, mut shift) = (0_u64, 0);
        loop {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            shift += 7;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
    }

    fn sleb(&mut self) -> Option<i64> {
        let (mut value, mut shift) = (0_i64, 0);
        loop {
            let byte = self.byte()?;
            value |= i64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            shift += 7;
            if byte & 0x80 == 0 {
                let is_negative = byte & 0x40 != 0 && shift < 64;
                return Some(if is_negative {
                    value | -1 << shift
                } else {
                    value
                });
            }
        }
    }

    fn skip(&mut self, length: u64) -> Option<()> {
        let rest = (self.end.addr()).saturating_sub(self.at.addr());
        if length > rest as u64 {
            return None;
        }
        self.at = self.at.wrapping_add(length as usize);
        Some(())
    }

    /// A pointer of this encoding. Only those that compilers write in `.eh_frame` are known.
    fn pointer(&mut self, encoding: u8) -> Option<usize> {
        let from = self.at.addr();
        let value = match encoding & 0x0f {
            0x00 | 0x04 | 0x0c => i64::from_ne_bytes(self.take()?),
            0x03 => i64::from(self.word()?),
            0x0b => i64::from(i32::from_ne_bytes(self.take()?)),
            _ => return None,
        };
        match encoding & 0x70 {
            0x00 => Some(value as usize),
            0x10 => Some(from.wrapping_add_signed(value as isize)),
            _ => None,
        }
    }
}

/// Fields that the functions of an object share.
struct Common {
    code: u64,
    data: i64,
    ra: usize,
    encoding: u8,
    has_length: bool,
    instructions: Bytes,
}

/// The result of a look for rules.
pub enum Found {
    /// There are none: the code has no unwind information.
    Nothing,
    /// There are some that are not understood, or that say that nobody has called.
    Unknown,
    /// The rules, and the number of the register with the return address.
    Rules(Row, usize),
}

/// The rules at an address of code.
///
/// # Safety
///
/// `header` is null, or that of the unwind information of a loaded object with this address, which
/// stays loaded.
pub unsafe fn row(header: *const u8, address: usize) -> Found {
    if header.is_null() {
        return Found::Nothing;
    }
    // SAFETY: the caller's promise. Its length is in it.
    let Some((_, entry)) = (unsafe { search(header, address) }) else {
        return Found::Nothing;
    };
    // SAFETY: a pointer to an entry that the header has.
    unsafe { function(entry, address) }.unwrap_or(Found::Unknown)
}

/// The beginning of the last function that begins at the address or below.
///
/// # Safety
///
/// As for [`row`].
pub unsafe fn start(header: *const u8, address: usize) -> Option<usize> {
    if header.is_null() {
        return None;
    }
    // SAFETY: the caller's promise.
    unsafe { search(header, address) }.map(|(start, _)| start)
}

/// The same of an entry.
///
/// # Safety
///
/// `entry` is one of a loaded object, which stays loaded.
unsafe fn function(entry: *const u8, address: usize) -> Option<Found> {
    // SAFETY: the caller's promise.
    let mut function = unsafe { record(entry) }?;
    let from = function.at;
    let back = function.word()?;
    // SAFETY: the object's own, before this one.
    let common = unsafe { common(from.wrapping_sub(back as usize)) }?;
    let start = function.pointer(common.encoding)?;
    let length = function.pointer(common.encoding & 0x0f)?;
    if !(start..start.checked_add(length)?).contains(&address) {
        return Some(Found::Nothing);
    }
    if common.has_length {
        let length = function.uleb()?;
        function.skip(length)?;
    }
    let mut row = Row::NONE;
    run(
        common.instructions,
        &common,
        (0, u64::MAX),
        &Row::NONE,
        &mut row,
    )?;
    let initial = row;
    let within = (address - start) as u64;
    run(function, &common, (0, within), &initial, &mut row)?;
    (common.ra < REGISTERS).then_some(Found::Rules(row, common.ra))
}

/// The beginning and the entry of the last function that begins at the address or below, by the
/// header's table.
///
/// # Safety
///
/// As for [`row`].
unsafe fn search(header: *const u8, address: usize) -> Option<(usize, *const u8)> {
    // SAFETY: the caller's promise: a header is at least as long.
    let mut bytes = unsafe { Bytes::new(header, 12) };
    let [version, frames, count, table] = bytes.take()?;
    // As all linkers write it: offsets from here, in order.
    if version != 1 || frames & 0x0f != 0x0b || count != 0x03 || table != 0x3b {
        return None;
    }
    bytes.word()?;
    let count = bytes.word()? as usize;
    let items = bytes.at;
    let item = |number: usize| {
        // SAFETY: the table has `count` items of eight bytes.
        let mut bytes = unsafe { Bytes::new(items.wrapping_add(number * 8), 8) };
        let [start, entry] = [bytes.word()? as i32, bytes.word()? as i32];
        Some((
            header.addr().wrapping_add_signed(start as isize),
            header.wrapping_offset(entry as isize),
        ))
    };
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low.midpoint(high);
        match item(middle)?.0 <= address {
            true => low = middle + 1,
            false => high = middle,
        }
    }
    item(low.checked_sub(1)?)
}

/// The content behind the length of a record.
///
/// # Safety
///
/// There is a record of `.eh_frame`.
unsafe fn record(at: *const u8) -> Option<Bytes> {
    // SAFETY: the caller's promise.
    let length = unsafe { Bytes::new(at, 4) }.word()?;
    // All ones begin a longer length, which no compiler needs.
    if length == 0 || length == u32::MAX {
        return None;
    }
    // SAFETY: the record's own length.
    Some(unsafe { Bytes::new(at.wrapping_add(4), length as usize) })
}

/// # Safety
///
/// As for [`record`].
unsafe fn common(at: *const u8) -> Option<Common> {
    // SAFETY: the caller's promise.
    let mut bytes = unsafe { record(at) }?;
    if bytes.word()? != 0 {
        return None;
    }
    let version = bytes.byte()?;
    let mut names = bytes;
    while bytes.byte()? != 0 {}
    let (code, data) = (bytes.uleb()?, bytes.sleb()?);
    let ra = match version {
        1 => bytes.byte()?.into(),
        _ => bytes.uleb()?,
    };
    let mut common = Common {
        code,
        data,
        ra: ra as usize,
        encoding: 0,
        has_length: false,
        instructions: bytes,
    };
    match names.byte()? {
        0 => return Some(common),
        b'z' => common.has_length = true,
        _ => return None,
    }
    let length = bytes.uleb()?;
    let mut extras = bytes;
    bytes.skip(length)?;
    common.instructions = bytes;
    loop {
        match names.byte()? {
            0 => return Some(common),
            b'R' => common.encoding = extras.byte()?,
            b'L' => _ = extras.byte()?,
            b'P' => {
                let encoding = extras.byte()?;
                extras.pointer(encoding & 0x0f)?;
            }
            b'B' => {}
            // Frames of signal handlers among them: what they interrupted is no caller.
            _ => return None,
        }
    }
}

/// The most rows that are kept aside at a time.
const KEPT: usize = 4;

/// Runs instructions from an address of code to another.
fn run(
    mut bytes: Bytes,
    common: &Common,
    (mut at, to): (u64, u64),
    initial: &Row,
    row: &mut Row,
) -> Option<()> {
    let mut kept = [Row::NONE; KEPT];
    let mut depth = 0;
    while bytes.at < bytes.end {
        let code = bytes.byte()?;
        let low = u64::from(code & 0x3f);
        let offset = |value: i64| Rule((value.wrapping_mul(common.data)) as i32);
        match code >> 6 {
            1 => at += low * common.code,
            2 => {
                let value = bytes.uleb()? as i64;
                row.set(low, offset(value));
            }
            3 => row.set(low, initial.rules.get(low as usize).copied()?),
            _ => match code {
                0x00 => {}
                0x02 => at += u64::from(bytes.byte()?) * common.code,
                0x03 => at += u64::from(u16::from_ne_bytes(bytes.take()?)) * common.code,
                0x04 => at += u64::from(bytes.word()?) * common.code,
                0x05 => {
                    let (register, value) = (bytes.uleb()?, bytes.uleb()? as i64);
                    row.set(register, offset(value));
                }
                0x06 => {
                    let register = bytes.uleb()?;
                    let rule = initial.rules.get(register as usize).copied();
                    row.set(register, rule.unwrap_or(Rule::SAME));
                }
                0x07 => row.set(bytes.uleb()?, Rule::UNKNOWN),
                0x08 => row.set(bytes.uleb()?, Rule::SAME),
                0x09 | 0x14 => {
                    let (register, _) = (bytes.uleb()?, bytes.uleb()?);
                    row.set(register, Rule::UNKNOWN);
                }
                0x0a => {
                    *kept.get_mut(depth)? = *row;
                    depth += 1;
                }
                0x0b => {
                    depth = depth.checked_sub(1)?;
                    *row = kept[depth];
                }
                0x0c => {
                    row.register = bytes.uleb()? as usize;
                    row.offset = bytes.uleb()? as i64;
                    row.is_loaded = false;
                }
                0x0d => row.register = bytes.uleb()? as usize,
                0x0e => row.offset = bytes.uleb()? as i64,
                0x0f => frame_expression(&mut bytes, row)?,
                0x10 | 0x16 => {
                    row.set(bytes.uleb()?, Rule::UNKNOWN);
                    let length = bytes.uleb()?;
                    bytes.skip(length)?;
                }
                0x11 => {
                    let (register, value) = (bytes.uleb()?, bytes.sleb()?);
                    row.set(register, offset(value));
                }
                0x12 => {
                    row.register = bytes.uleb()? as usize;
                    row.offset = bytes.sleb()?.wrapping_mul(common.data);
                    row.is_loaded = false;
                }
                0x13 => row.offset = bytes.sleb()?.wrapping_mul(common.data),
                0x15 => {
                    let (register, _) = (bytes.uleb()?, bytes.sleb()?);
                    row.set(register, Rule::UNKNOWN);
                }
                // The return address is signed from here on, or no longer: its mark goes anyway.
                0x2d => {}
                0x2e => _ = bytes.uleb()?,
                _ => return None,
            },
        }
        if at > to {
            return Some(());
        }
    }
    Some(())
}

/// The expression of a realigned stack's frame: the word at an offset from a register. Of others
/// the frame is not known.
fn frame_expression(bytes: &mut Bytes, row: &mut Row) -> Option<()> {
    const BASE_REGISTER: u8 = 0x70;
    const DEREFERENCE: u8 = 0x06;
    let length = bytes.uleb()?;
    let mut expression = *bytes;
    bytes.skip(length)?;
    expression.end = bytes.at;
    row.register = usize::MAX;
    let operation = expression.byte()?;
    let offset = expression.sleb().unwrap_or_default();
    if (BASE_REGISTER..BASE_REGISTER + 32).contains(&operation)
        && expression.byte() == Some(DEREFERENCE)
        && expression.at == expression.end
    {
        row.register = (operation - BASE_REGISTER).into();
        row.offset = offset;
        row.is_loaded = true;
    }
    Some(())
}
