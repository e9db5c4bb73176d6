//! Addresses in readable form, without allocation: `object(symbol+0x12)`, by the object's exports
//! or else by [its file's](symtab) debug symbols; `object+0x1234` if neither has a name. Names of
//! Rust are demangled. `addr2line -fie object 0x1234` says more, and so does a reader of [`Marks`].

use std::cell::Cell;
use std::ffi::CStr;
use std::fmt;
use std::fmt::Write;
use std::mem::MaybeUninit;
use std::ptr;

use super::symtab;
use overlock_linux::__private::extras;

/// A code address: the one after a call.
#[derive(Clone, Copy)]
pub(super) struct Code(pub(super) usize);

/// The address of a lock.
#[derive(Clone, Copy)]
pub(super) struct Data(pub(super) usize);

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The called function may never return: then the address is that of the next function.
        show(self.0, self.0.saturating_sub(1), f)
    }
}

impl fmt::Display for Data {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(self.0, self.0, f)
    }
}

thread_local! {
    /// No destructor, no lazy initialisation: this is always there.
    static MARKED: Cell<bool> = const { Cell::new(false) };
}

/// While one exists, the calling thread marks addresses, for a reader with a file's debug
/// information. A mark is a unit separator, the path of the object, a unit separator, the offset
/// from the object's beginning in hexadecimal, a unit separator, the unmarked text, and a record
/// separator.
pub(super) struct Marks {
    before: bool,
}

impl Marks {
    pub(super) fn set(on: bool) -> Marks {
        Marks {
            before: MARKED.replace(on),
        }
    }
}

impl Drop for Marks {
    fn drop(&mut self) {
        MARKED.set(self.before);
    }
}

const UNIT: char = '\u{1f}';
const RECORD: char = '\u{1e}';

fn show(address: usize, within: usize, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let Some(info) = look_up(within) else {
        return write!(f, "{address:#x}");
    };
    // SAFETY: the loader's name for an object that is loaded; or null, which is checked.
    let path = unsafe { name(info.dli_fname) }.unwrap_or_default();
    let base = info.dli_fbase.addr();
    // A relative path may name another file for the reader.
    let is_known = path.starts_with(b"/") || is_main(base);
    if !MARKED.get() || !is_known || !extras::are_granted() {
        return plain(&info, address, within, f);
    }
    f.write_char(UNIT)?;
    if is_main(base) {
        let mut path = [0u8; 256];
        // SAFETY: writes no more than there is.
        let length = unsafe {
            overlock_linux::__private::system_call!(
                libc::SYS_readlinkat,
                libc::AT_FDCWD,
                c"/proc/self/exe".as_ptr(),
                path.as_mut_ptr(),
                path.len(),
            )
        };
        text(path.get(..length as usize).unwrap_or_default(), f)?;
    } else {
        text(path, f)?;
    }
    write!(f, "{UNIT}{:x}{UNIT}", within.wrapping_sub(base))?;
    plain(&info, address, within, f)?;
    f.write_char(RECORD)
}

fn plain(
    info: &libc::Dl_info,
    address: usize,
    within: usize,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let path = match is_main(info.dli_fbase.addr()) {
        // The loader's name is the first argument, over which programs write their titles.
        // SAFETY: it has no preconditions.
        true => ptr::with_exposed_provenance(unsafe { libc::getauxval(libc::AT_EXECFN) } as usize),
        false => info.dli_fname,
    };
    // SAFETY: a name that ends with a zero, the kernel's or the loader's for an object that is
    // loaded; or null, which is checked first.
    let object = unsafe { name(path) }.unwrap_or(b"?");
    let object = object.rsplit(|byte| *byte == b'/').next();
    text(object.unwrap_or(b"?"), f)?;
    let base = info.dli_fbase.addr();
    // SAFETY: as above, for the name of a symbol in it.
    if let Some(name) = unsafe { name(info.dli_sname) } {
        return symbol(name, address, info.dli_saddr.addr(), f);
    }
    match in_file(info, base, within) {
        Some(found) => symbol(found.name(), address, found.address, f),
        None => write!(f, "+{:#x}", address.wrapping_sub(base)),
    }
}

fn symbol(name: &[u8], address: usize, begin: usize, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_char('(')?;
    match demangled(name) {
        Some(name) => write!(f, "{name:#}")?,
        None => text(name, f)?,
    }
    write!(f, "+{:#x})", address.wrapping_sub(begin))
}

/// A name of Rust as people write it.
fn demangled(name: &[u8]) -> Option<rustc_demangle::Demangle<'_>> {
    rustc_demangle::try_demangle(core::str::from_utf8(name).ok()?).ok()
}

/// Whether the function that makes a call at this address is of overlock's own crates, as far as
/// its name is known.
pub(super) fn is_own(call: usize) -> bool {
    let within = call.saturating_sub(1);
    let Some(info) = look_up(within) else {
        return false;
    };
    // SAFETY: the loader's name for a symbol; or null, which is checked first.
    if let Some(name) = unsafe { name(info.dli_sname) } {
        return is_ours(name);
    }
    in_file(&info, info.dli_fbase.addr(), within).is_some_and(|found| is_ours(found.name()))
}

fn is_ours(name: &[u8]) -> bool {
    /// The beginning of what is written, without the brackets of `<Type as Trait>::function`.
    struct Begin([u8; 18], usize);

    impl Write for Begin {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            for byte in text.bytes().filter(|byte| *byte != b'<') {
                let place = self.0.get_mut(self.1).ok_or(fmt::Error)?;
                *place = byte;
                self.1 += 1;
            }
            Ok(())
        }
    }

    let Some(name) = demangled(name) else {
        return false;
    };
    let mut begin = Begin([0; 18], 0);
    // It fails once there is enough.
    let _ = write!(begin, "{name:#}");
    [&b"overlock::"[..], b"overlock_lockdep::"]
        .iter()
        .any(|own| begin.0.starts_with(own))
}

fn in_file(info: &libc::Dl_info, base: usize, within: usize) -> Option<symtab::Symbol> {
    if is_main(base) {
        // The loader has the program's name as it was started, which need not be its path.
        return symtab::find(c"/proc/self/exe", base, within);
    }
    if info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: the loader's name for an object that is loaded.
    let path = unsafe { CStr::from_ptr(info.dli_fname) };
    symtab::find(path, base, within)
}

/// Returns the beginning of the object that contains the address.
pub(super) fn base_of(address: usize) -> Option<usize> {
    look_up(address).map(|info| info.dli_fbase.addr())
}

/// Whether the object that begins there is the program.
pub(super) fn is_main(base: usize) -> bool {
    // SAFETY: it has no preconditions.
    let headers = unsafe { libc::getauxval(libc::AT_PHDR) } as usize;
    base_of(headers) == Some(base)
}

fn look_up(address: usize) -> Option<libc::Dl_info> {
    if cfg!(miri) {
        return None;
    }
    let mut info = MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: any address may be asked for, and `info` is valid for the write.
    let found = unsafe { libc::dladdr(ptr::without_provenance(address), info.as_mut_ptr()) } != 0;
    // SAFETY: zeros are valid too.
    found.then(|| unsafe { info.assume_init() })
}

/// # Safety
///
/// Null, or a string that lives for as long as the result is used.
unsafe fn name<'a>(name: *const libc::c_char) -> Option<&'a [u8]> {
    // SAFETY: the caller's promise.
    (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) }.to_bytes())
}

fn text(bytes: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    bytes
        .utf8_chunks()
        .try_for_each(|chunk| f.write_str(chunk.valid()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_rust_are_readable_and_those_of_our_crates_known() {
        let own = b"_ZN8overlock4lock17Lock$LT$R$C$T$GT$4lock17h0123456789abcdefE";
        let method = b"_RNvXNtCs1234_8overlock4lockNtB2_4LockNtB2_5Clone5clone";
        let users = b"_ZN5shops5order17h0123456789abcdefE";
        let name = demangled(own).unwrap();
        assert_eq!(format!("{name:#}"), "overlock::lock::Lock<R,T>::lock");
        assert!(is_ours(own) && is_ours(method));
        assert!(!is_ours(users) && !is_ours(b"main") && !is_ours(b"\xff"));
    }

    #[test]
    #[cfg(not(miri))]
    fn what_an_object_exports_has_its_name_and_the_rest_its_distance() {
        let exported = Code(libc::getpid as *const () as usize + 1).to_string();
        assert!(
            exported.contains("libc.so.6(") && exported.ends_with("getpid+0x1)"),
            "{exported}"
        );
        static HERE: u64 = 1;
        let own = Data(ptr::from_ref(&HERE).addr()).to_string();
        assert!(
            own.starts_with("overlock_lockdep-") && own.contains("HERE") && own.ends_with("+0x0)"),
            "{own}"
        );
        // Part of an object and of no symbol: its header.
        let headers = base_of(ptr::from_ref(&HERE).addr()).unwrap();
        let own = Data(headers + 8).to_string();
        assert!(
            own.starts_with("overlock_lockdep-") && own.ends_with("+0x8"),
            "{own}"
        );
        assert_eq!(Data(0x10).to_string(), "0x10");
    }
}
