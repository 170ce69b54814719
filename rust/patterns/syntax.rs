//! Reads a pattern: the syntax of the regex crate, with ASCII classes, as far as a stream can be scanned for it.

use regex_syntax::ast::parse::ParserBuilder;
use regex_syntax::ast::{
    Ast, ClassAscii, ClassAsciiKind, ClassBracketed, ClassPerl, ClassPerlKind, ClassSet, ClassSetItem, Flag, Flags,
    FlagsItem, FlagsItemKind, Group, GroupKind,
};
use regex_syntax::hir::translate::TranslatorBuilder;
use regex_syntax::hir::{Hir, HirKind, Look};

/// How deep groups and repetitions may nest. This file recurses as deep.
const NESTING: u32 = 50;

/// The pattern as the automaton is built from it; an error says what is wrong with it.
pub(super) fn parse(pattern: &str) -> Result<Hir, String> {
    let parser = ParserBuilder::new().nest_limit(NESTING).build();
    let mut ast = { parser }.parse(pattern).map_err(|error| error.kind().to_string())?;
    make_ascii(&mut ast);
    let hir = TranslatorBuilder::new().build().translate(pattern, &ast).map_err(|error| error.kind().to_string())?;
    match hir.properties().minimum_len() {
        None => return Err("it can never match".into()),
        Some(0) => return Err("it can match the empty string".into()),
        Some(_) => check_looks(&hir, true, true)?,
    }
    Ok(hir)
}

/// Makes `\d`, `\s`, `\w` and `\b` ASCII: the automata of the Unicode ones are a hundred times as large, and their
/// tables would be half of the library.
fn make_ascii(ast: &mut Ast) {
    match ast {
        Ast::ClassPerl(class) => {
            let kind = ClassSet::Item(ClassSetItem::Ascii(ascii(class)));
            *ast = Ast::class_bracketed(ClassBracketed { span: class.span, negated: false, kind });
        }
        Ast::ClassBracketed(class) => make_set_ascii(&mut class.kind),
        Ast::Assertion(assertion) => {
            let item = |kind| FlagsItem { span: assertion.span, kind };
            let items = vec![item(FlagsItemKind::Negation), item(FlagsItemKind::Flag(Flag::Unicode))];
            let kind = GroupKind::NonCapturing(Flags { span: assertion.span, items });
            let span = assertion.span;
            *ast = Ast::group(Group { span, kind, ast: Box::new(ast.clone()) });
        }
        Ast::Repetition(repetition) => make_ascii(&mut repetition.ast),
        Ast::Group(group) => make_ascii(&mut group.ast),
        Ast::Alternation(alternation) => alternation.asts.iter_mut().for_each(make_ascii),
        Ast::Concat(concat) => concat.asts.iter_mut().for_each(make_ascii),
        Ast::Empty(_) | Ast::Flags(_) | Ast::Literal(_) | Ast::Dot(_) | Ast::ClassUnicode(_) => {}
    }
}

fn make_set_ascii(set: &mut ClassSet) {
    match set {
        ClassSet::Item(item) => make_item_ascii(item),
        ClassSet::BinaryOp(operation) => {
            make_set_ascii(&mut operation.lhs);
            make_set_ascii(&mut operation.rhs);
        }
    }
}

fn make_item_ascii(item: &mut ClassSetItem) {
    match item {
        ClassSetItem::Perl(class) => *item = ClassSetItem::Ascii(ascii(class)),
        ClassSetItem::Bracketed(class) => make_set_ascii(&mut class.kind),
        ClassSetItem::Union(union) => union.items.iter_mut().for_each(make_item_ascii),
        _ => {}
    }
}

fn ascii(class: &ClassPerl) -> ClassAscii {
    let kind = match class.kind {
        ClassPerlKind::Digit => ClassAsciiKind::Digit,
        ClassPerlKind::Space => ClassAsciiKind::Space,
        ClassPerlKind::Word => ClassAsciiKind::Word,
    };
    ClassAscii { span: class.span, kind, negated: class.negated }
}

/// Whether what looks around stands only where a stream can decide it at once: `\b` and `(?m)^` at the beginning look
/// at the character before, `\b` at the end at the one behind. `first` and `last` tell whether `hir` is there.
fn check_looks(hir: &Hir, first: bool, last: bool) -> Result<(), String> {
    match hir.kind() {
        HirKind::Look(Look::WordAscii) if first || last => Ok(()),
        HirKind::Look(Look::StartLF) if first => Ok(()),
        HirKind::Look(look) => Err(refusal(*look).into()),
        HirKind::Capture(capture) => check_looks(&capture.sub, first, last),
        HirKind::Repetition(repetition) => check_looks(&repetition.sub, false, false),
        HirKind::Alternation(branches) => branches.iter().try_for_each(|branch| check_looks(branch, first, last)),
        HirKind::Concat(parts) => parts.iter().enumerate().try_for_each(|(at, part)| {
            let (before, behind) = (&parts[..at], &parts[at + 1..]);
            check_looks(part, first && before.iter().all(has_no_width), last && behind.iter().all(has_no_width))
        }),
        HirKind::Empty | HirKind::Literal(_) | HirKind::Class(_) => Ok(()),
    }
}

fn has_no_width(hir: &Hir) -> bool {
    hir.properties().maximum_len() == Some(0)
}

fn refusal(look: Look) -> &'static str {
    match look {
        Look::End | Look::EndLF | Look::EndCRLF => "$ and \\z need the end of the text, which a stream does not know",
        Look::Start => "^ and \\A are not taken; (?m)^ at the beginning is, for the beginning of a line",
        Look::StartLF => "(?m)^ is taken at the beginning only",
        Look::WordAscii => "\\b is taken at the beginning and at the end only",
        _ => "of what looks around, only \\b at either end and (?m)^ at the beginning are taken",
    }
}
