//! Parses patterns in the syntax of the regex crate, with ASCII classes. Refuses patterns that cannot be matched while
//! text streams in, such as those with a look-ahead.

use std::convert::Infallible;
use std::ops::RangeInclusive;

use regex_syntax::ast::parse::ParserBuilder;
use regex_syntax::ast::{
    Ast, ClassAscii, ClassAsciiKind, ClassBracketed, ClassPerl, ClassPerlKind, ClassSet, ClassSetItem, Flag, Flags,
    RepetitionKind, RepetitionRange, Span, Visitor, visit,
};
use regex_syntax::hir::translate::TranslatorBuilder;
use regex_syntax::hir::{Hir, HirKind, Look};

use super::alphabet::is_supported;
use super::work::{MAX_POSITIONS, TooLarge, Work};

const UNSUPPORTED_LOOK: &str =
    "look-around is not supported, except ^, $, \\A, \\z, \\b and \\B; use \\b for a word boundary";

/// How deep groups and repetitions may nest. The functions of this file recurse to this depth.
const NESTING: u32 = 50;

#[derive(Debug)]
pub(super) struct Parsed {
    pub(super) ast: Ast,
    pub(super) hir: Hir,
    /// The number of characters and classes of the pattern, with repetitions written out.
    pub(super) positions: usize,
}

/// Parses a pattern. `class_work` is the budget for the steps to make its classes, such as `[a-z]`. The error says what
/// is wrong with the pattern.
pub(super) fn parse(pattern: &str, class_work: &mut Work) -> Result<Parsed, String> {
    let mut parser = ParserBuilder::new().nest_limit(NESTING).build();
    let mut ast = parser.parse(pattern).map_err(|error| explained(&error.kind().to_string()))?;
    let positions = positions(&ast);
    if positions > MAX_POSITIONS {
        return Err(too_large(pattern, &ast));
    }
    make_ascii(&mut ast)?;
    let Ok(steps) = visit(&ast, ClassSteps::default());
    class_work.spend(steps).map_err(|TooLarge| {
        "its character classes are too large; use fewer characters, and no large range under (?i)".to_string()
    })?;
    let hir = TranslatorBuilder::new().build().translate(pattern, &ast);
    let hir = hir.map_err(|error| explained(&error.kind().to_string()))?;
    match least_length(&hir) {
        None => Err("it can never match".into()),
        Some(0) => Err("it can match the empty string; make it need a character: write a+ instead of a*".into()),
        Some(_) => {
            check_looks(&hir, true)?;
            Ok(Parsed { ast, hir, positions })
        }
    }
}

/// Returns a lower bound of the length of a match. It is 0 only if a match can be empty, and `None` if the pattern
/// never matches. `Hir::properties` of regex-syntax is no help: if one branch of an alternation never matches, it gives
/// no length for the alternation.
fn least_length(hir: &Hir) -> Option<usize> {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => Some(0),
        HirKind::Literal(literal) => Some(literal.0.len()),
        HirKind::Class(class) => (!class.is_empty()).then_some(1),
        HirKind::Capture(capture) => least_length(&capture.sub),
        HirKind::Repetition(repetition) if repetition.min == 0 => Some(0),
        HirKind::Repetition(repetition) => least_length(&repetition.sub),
        HirKind::Alternation(branches) => branches.iter().filter_map(least_length).min(),
        HirKind::Concat(parts) => parts.iter().try_fold(0, |length, part| Some(length + least_length(part)?)),
    }
}

/// Returns the error of the parser, with advice about what to write instead.
fn explained(problem: &str) -> String {
    let advice = match problem {
        _ if problem.starts_with("look-around") => {
            "; use \\b, (?m)^ or (?m)$, or make the text around it a part of the pattern"
        }
        _ if problem.starts_with("backreferences") => "; write the alternatives out, such as (aa|bb)",
        _ if problem.starts_with("repetition") => "; write \\{ for a brace, and \\* for a star",
        _ => "",
    };
    format!("{problem}{advice}")
}

/// Makes `\d`, `\s` and `\w` ASCII. The automata of the Unicode classes are a hundred times larger, and their tables
/// would be half of the library.
fn make_ascii(ast: &mut Ast) -> Result<(), String> {
    match ast {
        Ast::ClassPerl(class) => *ast = Ast::class_bracketed(ascii(class)),
        Ast::ClassBracketed(class) => make_set_ascii(&mut class.kind)?,
        Ast::ClassUnicode(_) => return Err(no_properties()),
        Ast::Repetition(repetition) => make_ascii(&mut repetition.ast)?,
        Ast::Group(group) => {
            check_flags(group.flags())?;
            make_ascii(&mut group.ast)?;
        }
        Ast::Flags(flags) => check_flags(Some(&flags.flags))?,
        Ast::Alternation(alternation) => alternation.asts.iter_mut().try_for_each(make_ascii)?,
        Ast::Concat(concat) => concat.asts.iter_mut().try_for_each(make_ascii)?,
        Ast::Empty(_) | Ast::Literal(_) | Ast::Dot(_) | Ast::Assertion(_) => {}
    }
    Ok(())
}

/// Refuses the flag `R`. With it, a carriage return also ends a line. But look-around only sees the `Kind` of a
/// character, and there is no kind for carriage returns.
fn check_flags(flags: Option<&Flags>) -> Result<(), String> {
    match flags.is_some_and(|flags| flags.flag_state(Flag::CRLF) == Some(true)) {
        true => Err("(?R) is not supported; write \\r?\\n".into()),
        false => Ok(()),
    }
}

fn make_set_ascii(set: &mut ClassSet) -> Result<(), String> {
    match set {
        ClassSet::Item(item) => make_item_ascii(item),
        ClassSet::BinaryOp(operation) => {
            make_set_ascii(&mut operation.lhs)?;
            make_set_ascii(&mut operation.rhs)
        }
    }
}

fn make_item_ascii(item: &mut ClassSetItem) -> Result<(), String> {
    match item {
        ClassSetItem::Perl(class) => *item = ClassSetItem::Bracketed(Box::new(ascii(class))),
        ClassSetItem::Unicode(_) => return Err(no_properties()),
        ClassSetItem::Bracketed(class) => make_set_ascii(&mut class.kind)?,
        ClassSetItem::Union(union) => {
            // If some items of a class are classes, as in `[a-z[^b]]`, makes every item a class. With mixed items,
            // regex-syntax would be slow under `(?i)`: it folds the case of the inner classes, and then folds the whole
            // outer class again. With `[^b]`, that is nearly all of Unicode.
            union.items.iter_mut().try_for_each(make_item_ascii)?;
            let is_class = |item: &ClassSetItem| !matches!(item, ClassSetItem::Literal(_) | ClassSetItem::Range(_));
            if union.items.iter().any(is_class) {
                for item in union.items.iter_mut().filter(|item| !is_class(item)) {
                    let (span, kind) = (*item.span(), ClassSet::Item(item.clone()));
                    *item = ClassSetItem::Bracketed(Box::new(ClassBracketed { span, negated: false, kind }));
                }
            }
        }
        _ => {}
    }
    Ok(())
}

fn ascii(class: &ClassPerl) -> ClassBracketed {
    let kind = match class.kind {
        ClassPerlKind::Digit => ClassAsciiKind::Digit,
        ClassPerlKind::Space => ClassAsciiKind::Space,
        ClassPerlKind::Word => ClassAsciiKind::Word,
    };
    let set = ClassSet::Item(ClassSetItem::Ascii(ClassAscii { span: class.span, kind, negated: false }));
    ClassBracketed { span: class.span, negated: class.negated, kind: set }
}

#[cold]
fn no_properties() -> String {
    "\\p{…} is not supported; write the ranges, such as [а-яё]".into()
}

/// Refuses look-around that a stream cannot decide while text comes in. `$` and `\z` are supported only at the end of a
/// pattern or of a branch of an alternation. `(?m)$` is supported everywhere. `last` says whether `hir` is at the end
/// of a pattern or branch.
fn check_looks(hir: &Hir, last: bool) -> Result<(), String> {
    match hir.kind() {
        HirKind::Look(Look::End) if !last => {
            Err("$ and \\z are supported only at the end of a pattern or branch; (?m)$ is the end of a line".into())
        }
        HirKind::Look(look) if !is_supported(*look) => Err(UNSUPPORTED_LOOK.into()),
        HirKind::Capture(capture) => check_looks(&capture.sub, last),
        HirKind::Repetition(repetition) => check_looks(&repetition.sub, last && repetition.max == Some(1)),
        HirKind::Alternation(branches) => branches.iter().try_for_each(|branch| check_looks(branch, last)),
        HirKind::Concat(parts) => parts.iter().enumerate().try_for_each(|(at, part)| {
            let no_width = |part: &Hir| part.properties().maximum_len() == Some(0);
            check_looks(part, last && parts[at + 1..].iter().all(no_width))
        }),
        HirKind::Empty | HirKind::Look(_) | HirKind::Literal(_) | HirKind::Class(_) => Ok(()),
    }
}

/// Returns the error for a pattern whose automaton is too large. The error quotes the longest repetition of the
/// pattern. If the pattern has none, the error quotes the whole pattern.
#[cold]
pub(super) fn too_large(pattern: &str, ast: &Ast) -> String {
    let repetition = longest_repetition(ast);
    let (part, positions) = repetition.unwrap_or((ast.span(), positions(ast)));
    let part = quoted(pattern, part);
    match repetition {
        Some(_) => format!(
            "its automaton is too large: {part:?} alone is {positions} characters long when its repetitions are written \
             out; lower the counts, or use a repetition without a limit, such as [a-z]+, with max_held"
        ),
        None => format!(
            "its automaton is too large: {part:?} is {positions} characters long; pass its alternatives as stops or as \
             separate patterns: a pattern without meta characters costs as little as a stop"
        ),
    }
}

fn quoted(pattern: &str, part: &Span) -> String {
    let part = &pattern[part.start.offset..part.end.offset];
    if part.len() > 60 { part.chars().take(40).chain(['…']).collect() } else { part.into() }
}

/// Returns the number of characters, classes and look-arounds of a pattern, with repetitions written out: 3 for `a{3}`.
pub(super) fn positions(ast: &Ast) -> usize {
    match ast {
        Ast::Empty(_) | Ast::Flags(_) => 0,
        Ast::Repetition(repetition) => {
            let times = match &repetition.op.kind {
                RepetitionKind::Range(range) => most(range),
                _ => 1,
            };
            positions(&repetition.ast).max(1).saturating_mul(times.max(1))
        }
        Ast::Literal(_) | Ast::Dot(_) | Ast::Assertion(_) => 1,
        Ast::ClassUnicode(_) | Ast::ClassPerl(_) | Ast::ClassBracketed(_) => 1,
        _ => children(ast).map(|child| positions(child).max(1)).fold(0, usize::saturating_add),
    }
}

fn most(range: &RepetitionRange) -> usize {
    match *range {
        RepetitionRange::Exactly(count) | RepetitionRange::AtLeast(count) | RepetitionRange::Bounded(_, count) => {
            count as usize
        }
    }
}

fn children(ast: &Ast) -> impl Iterator<Item = &Ast> {
    let (one, many): (Option<&Ast>, &[Ast]) = match ast {
        Ast::Repetition(repetition) => (Some(&repetition.ast), &[]),
        Ast::Group(group) => (Some(&group.ast), &[]),
        Ast::Alternation(alternation) => (None, &alternation.asts),
        Ast::Concat(concat) => (None, &concat.asts),
        _ => (None, &[]),
    };
    one.into_iter().chain(many)
}

/// Returns the bounded repetition that is the longest when written out, and its length.
fn longest_repetition(ast: &Ast) -> Option<(&Span, usize)> {
    let bounded = matches!(ast, Ast::Repetition(repetition) if matches!(repetition.op.kind, RepetitionKind::Range(_)));
    let own = bounded.then(|| (ast.span(), positions(ast)));
    children(ast).filter_map(longest_repetition).chain(own).max_by_key(|(_, positions)| *positions)
}

/// A class of a pattern, such as `[a-z]`, is counted as this many steps of work, in addition to the steps for its
/// items.
const CLASS: usize = 200;

/// A letter under `(?i)`, which ignores case, is counted as this many steps of work.
const LETTER: usize = 100;

/// Characters without case, such as ideographs. When regex-syntax folds case under `(?i)`, it skips a range of these
/// characters.
const WITHOUT_CASE: RangeInclusive<char> = '\u{2E80}'..='\u{A4CF}';

/// Counts the steps that regex-syntax needs for the classes of a pattern. regex-syntax compares each item of a class
/// with all items before it. Under `(?i)`, it also folds each code point of an item.
#[derive(Default)]
struct ClassSteps {
    /// Whether a `(?i)` was seen in the pattern so far. It is taken to hold up to the end of the pattern, even if its
    /// group ends earlier. So the count may be too high.
    folds: bool,
    steps: usize,
}

impl Visitor for ClassSteps {
    type Output = usize;
    type Err = Infallible;

    fn finish(self) -> Result<usize, Infallible> {
        Ok(self.steps)
    }

    fn visit_pre(&mut self, ast: &Ast) -> Result<(), Infallible> {
        let flags = match ast {
            Ast::Flags(flags) => Some(&flags.flags),
            Ast::Group(group) => group.flags(),
            _ => None,
        };
        self.folds |= flags.is_some_and(|flags| flags.flag_state(Flag::CaseInsensitive) == Some(true));
        self.steps += match ast {
            Ast::ClassBracketed(_) => CLASS,
            Ast::Literal(_) if self.folds => LETTER,
            _ => 0,
        };
        Ok(())
    }

    fn visit_class_set_item_pre(&mut self, item: &ClassSetItem) -> Result<(), Infallible> {
        self.steps += match item {
            ClassSetItem::Union(union) => union.items.len() * union.items.len(),
            ClassSetItem::Range(range) if self.folds => {
                match WITHOUT_CASE.contains(&range.start.c) && WITHOUT_CASE.contains(&range.end.c) {
                    true => 1,
                    false => (range.end.c as usize).saturating_sub(range.start.c as usize) + 1,
                }
            }
            ClassSetItem::Ascii(_) if self.folds => 128,
            _ => 1,
        };
        Ok(())
    }
}
