//! Short forms of functions' names, for people who look at a table.

/// The name without what tells overloads and instances apart: arguments, parameters of templates,
/// and the type that a C++ function returns. The same name where it is of no such form.
pub fn brief(name: &str) -> String {
    Reader::default().read(name).unwrap_or_else(|| name.into())
}

/// `<` and `(` are part of these functions' names.
const OPERATOR: &str = "operator";

const ANONYMOUS: &str = "(anonymous namespace)";

#[derive(Default)]
struct Reader {
    out: String,
    angles: u32,
    parens: u32,
    has_arguments: bool,
}

impl Reader {
    /// `None` where brackets have no partners.
    fn read(mut self, name: &str) -> Option<String> {
        let mut rest = name;
        // The method of a type, in Rust: the type's name is that of the method.
        if let Some(inner) = name.strip_prefix('<') {
            let end = end_of_angles(inner)?;
            let (of, _) = inner[..end]
                .split_once(" as ")
                .unwrap_or((&inner[..end], ""));
            self.out = brief(of);
            rest = &inner[end + 1..];
        }
        while let Some(letter) = rest.chars().next() {
            let is_out = self.angles == 0 && self.parens == 0;
            if is_out && rest.starts_with(ANONYMOUS) {
                self.out += "(anonymous)";
                rest = &rest[ANONYMOUS.len()..];
                continue;
            }
            if is_out && self.out.ends_with(OPERATOR) && !letter.is_alphanumeric() {
                // Its name goes on to its arguments.
                let own = if rest.starts_with("()") {
                    2
                } else {
                    rest.find('(')?
                };
                self.out += &rest[..own];
                rest = &rest[own..];
                continue;
            }
            rest = &rest[letter.len_utf8()..];
            match letter {
                '<' => self.angles += 1,
                // That of `fn() -> T` is none.
                '-' if rest.starts_with('>') && !is_out => rest = &rest[1..],
                '>' if self.angles > 0 => self.angles -= 1,
                '(' => {
                    self.parens += 1;
                    self.has_arguments = true;
                }
                ')' => {
                    self.parens = self.parens.checked_sub(1)?;
                    // Java's names go on with the type that is returned.
                    if self.parens == 0 && rest.starts_with(char::is_alphabetic) {
                        rest = "";
                    }
                }
                _ if is_out => self.out.push(letter),
                _ => {}
            }
        }
        if self.angles != 0 || self.parens != 0 {
            return None;
        }
        // `foo::<u8>` has lost what followed.
        let out = self.out.replace("::::", "::");
        let mut out = out.trim_end_matches("::");
        if self.has_arguments {
            out = out.trim_end_matches(" const");
            if !out.contains(OPERATOR) {
                out = out.trim_end().rsplit(' ').next()?;
            }
        }
        (!out.is_empty()).then(|| out.to_owned())
    }
}

/// The place of the end of a bracket that has begun before the text.
fn end_of_angles(text: &str) -> Option<usize> {
    let mut depth = 1;
    let mut before = ' ';
    for (at, letter) in text.char_indices() {
        match letter {
            '<' => depth += 1,
            // That of `fn() -> T` is none.
            '>' if before != '-' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
        before = letter;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tells_overloads_apart_is_left_out() {
        for (name, short) in [
            ("search_file_buffered", "search_file_buffered"),
            (
                "Shelf<std::map<int, int>, Key>::put(Key const&) const",
                "Shelf::put",
            ),
            ("void ns::put<int>(int)", "ns::put"),
            (
                "(anonymous namespace)::Pool::take(int)",
                "(anonymous)::Pool::take",
            ),
            (
                "ns::Less<int>::operator()(int, int) const",
                "ns::Less::operator()",
            ),
            ("operator<< <char>(Stream<char>&, int)", "operator<< <char>"),
            ("Box::operator->(void)", "Box::operator->"),
            ("operator new(unsigned long)", "operator new"),
            (
                "main::{lambda(int)#1}::operator()(int) const",
                "main::{lambda#1}::operator()",
            ),
            (
                "<alloc::vec::Vec<T> as core::ops::Drop>::drop",
                "alloc::vec::Vec::drop",
            ),
            ("<ripgrep::Pool<fn() -> T>>::get", "ripgrep::Pool::get"),
            ("shop::work::<u8>", "shop::work"),
            ("shop::query::{closure#0}", "shop::query::{closure#0}"),
            ("N2.sell(I)V", "N2.sell"),
        ] {
            assert_eq!(brief(name), short);
        }
    }

    #[test]
    fn other_names_stay() {
        for name in [
            "a > b",
            "f)",
            "g(",
            "<",
            "",
            "[unknown]",
            "libz.so+0x12",
            "(holder unknown)",
        ] {
            assert_eq!(brief(name), name);
        }
    }
}
