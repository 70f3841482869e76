//! Text that others chose, made safe to print.

use std::borrow::Cow;

/// Writes control characters and those that change the direction of text as escapes: a process
/// can be called what it likes, and a terminal obeys what it is sent.
pub(super) fn printable(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for char in text.chars() {
        if is_unsafe(char) {
            shown.extend(char.escape_default());
        } else {
            shown.push(char);
        }
    }
    Cow::Owned(shown)
}

/// Control characters (Unicode category Cc), and the invisible formatting characters (Cf) that
/// reorder, join or hide text.
fn is_unsafe(char: char) -> bool {
    char.is_control()
        || matches!(char,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{feff}' | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_move_the_cursor_is_escaped() {
        assert_eq!(printable("a\x1b[2Jb\nc\td\u{9b}e"), r"a\u{1b}[2Jb\nc\td\u{9b}e");
        assert_eq!(printable("\u{202e}gnp.exe"), r"\u{202e}gnp.exe");
    }

    #[test]
    fn all_other_text_stays_as_it_is() {
        for text in ["", "python3 train.py --läuft", "学習", "50% \\x \"quoted\""] {
            assert!(matches!(printable(text), Cow::Borrowed(same) if same == text), "{text:?}");
        }
    }
}
