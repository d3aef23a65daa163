use pretty_assertions::assert_eq;

use super::*;

fn parse(head: &str) -> Result<(String, String), SkillError> {
    let skill = Skill::parse("p", &format!("---\n{head}\n---\n# Do it\n"))?;
    Ok((skill.name, skill.description))
}

#[test]
fn a_head_is_read_in_every_way_that_it_is_written() {
    let heads = [
        "name: pdf\ndescription: Fills in forms.",
        "description: \"Fills in \\\"forms\\\".\"\nlicense: MIT\nname: 'pdf'",
        "name: pdf # short\ndescription: >-\n  Fills in\n  forms.\nmetadata:\n  name: other",
        "name: pdf\ndescription:\n  Fills in\n  forms.",
        "name: pdf\ndescription: |\n  Fills in\n\n  forms.",
    ];
    let expected = |text: &str| Ok(("pdf".to_owned(), text.to_owned()));
    assert_eq!(
        heads.map(parse),
        [
            expected("Fills in forms."),
            expected("Fills in \"forms\"."),
            expected("Fills in forms."),
            expected("Fills in forms."),
            expected("Fills in forms."),
        ]
    );
}

#[test]
fn a_file_without_what_is_needed_says_what_is_missing() {
    let found = [
        Skill::parse("p", "# Forms"),
        Skill::parse("p", "---\nname: x\ndescription: y\n"),
        Skill::parse("p", "---\ndescription: y\n---\n"),
        Skill::parse("p", "---\nname: x\ndescription: \"\"\n---\n"),
        Skill::parse("p", "---\nnames: x\ndescription: y\n---\n"),
    ];
    let missing = |field| Err(SkillError::Missing { field });
    let cut = || Err(SkillError::NoFrontMatter);
    assert_eq!(
        found,
        [
            cut(),
            cut(),
            missing("name"),
            missing("description"),
            missing("name")
        ]
    );
}

#[test]
fn a_list_names_what_it_leaves_out_and_stays_within_its_bounds() {
    let skill = |number: usize| Skill::new(format!("s{number}"), "word ".repeat(100), "/p");
    let mut found = Found {
        skills: (0..100).map(skill).collect(),
        broken: vec![("/b".to_owned(), "no head".to_owned())],
        unread: 7,
    };
    found.skills.push(skill(0));
    let text = section(found);
    assert!(text.len() < BUDGET + 100, "{}", text.len());
    let lines: Vec<&str> = text.lines().collect();
    let shown = lines.len() - 2;
    assert!(lines[0].starts_with("- s0: word word") && lines[0].ends_with("… (/p)"));
    let left_out = format!("- {} more are left out: the list is full.", 107 - shown);
    assert_eq!(lines[shown..], ["- /b is skipped: no head", &left_out]);
}

#[test]
fn of_skills_with_one_name_the_first_counts_and_without_any_there_is_no_list() {
    let found = Found {
        skills: vec![
            Skill::new("a", "near", "/near"),
            Skill::new("a", "far", "/far"),
        ],
        ..Found::default()
    };
    assert_eq!(section(found), "- a: near (/near)\n");
    assert_eq!(section(Found::default()), "");
}
