"""Commands become programs: exact names, then expressions in their order; a changed map is another one."""

from pathlib import Path

import pytest

from jobsight.analyse.programmap import STARTER, MapError, Maps, Program, ProgramMap, parse


def mapped(*lines: str) -> ProgramMap:
    return ProgramMap([("site.tsv", "\n".join(lines))])


def test_an_exact_name_comes_before_expressions_wherever_it_stands() -> None:
    known = mapped("regex\tvasp.*\tAny VASP", "exact\tvasp_std\tVASP\tchemistry")
    assert known["vasp_std"] == Program("VASP", ("chemistry",))
    assert known["vasp_gam"] == Program("Any VASP")


def test_of_expressions_the_first_that_matches_the_whole_command_wins() -> None:
    known = mapped("regex\tgmx_mpi.*\tGROMACS MPI", "regex\tgmx.*\tGROMACS", "regex\t.*x\tX")
    assert [found.name for name in ("gmx_mpi_d", "gmx_d", "fox") if (found := known[name])] == [
        "GROMACS MPI",
        "GROMACS",
        "X",
    ]
    assert known["my_gmx_"] is None


def test_the_sites_own_expression_comes_before_an_exact_name_of_the_starter_map(tmp_path: Path) -> None:
    own = tmp_path / "own.tsv"
    own.write_text("regex\tpython3?\tOur Python\tours\n")
    known = Maps(str(own)).current()
    assert known["python3"] == Program("Our Python", ("ours",))
    assert known["vasp_std"] is not None


def test_without_the_starter_map_only_the_sites_own_counts(tmp_path: Path) -> None:
    own = tmp_path / "own.tsv"
    own.write_text("exact\tsolver\tSolver\n")
    known = Maps(str(own), starter=False).current()
    assert known["solver"] == Program("Solver")
    assert known["vasp_std"] is None


def test_a_name_longer_than_the_kernel_keeps_is_known_by_its_beginning() -> None:
    known = mapped("exact\trelion_refine_mpi\tRELION", "exact\trelion_refine_m\tSomething else")
    assert known["relion_refine_mpi"] == Program("RELION")
    assert known["relion_refine_m"] == Program("Something else"), "a whole name comes before a beginning"
    detailed = mapped("exact\trelion_refine_mpi\tRELION on cards\t\t--gpu")
    assert detailed.program("relion_refine_m", "relion_refine_mpi --gpu") == Program("RELION on cards")


def test_rules_on_arguments_hold_where_the_command_line_is_known() -> None:
    known = mapped(
        "exact\tpython3\tPython", "exact\tpython3\tTraining\tml\ttrain\\.py", "regex\tjava\tIGV\t\tigv\\.jar"
    )
    assert known.program("python3", "python3 /home/u/train.py --big") == Program("Training", ("ml",))
    assert known.program("python3", "python3 other.py") == Program("Python")
    assert known.program("python3") == Program("Python")
    assert known.program("java") is None
    assert known.program("java", "java -jar igv.jar") == Program("IGV")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("exact\tvasp", "line 3: expected kind, command, program"),
        ("glob\tvasp*\tVASP", "line 3: expected exact or regex, got 'glob'"),
        ("regex\tvasp(\tVASP", r"line 3: 'vasp\(' is no regular expression"),
        ("exact\tvasp\t", "line 3: the command or the program has no name"),
        ("exact\tok\tAgain", "line 3: 'ok' is already on line 2"),
        ("exact\ta\tB\tc\td\te", "line 3: expected kind"),
        ("exact\tjava\tJ\t\t(", r"line 3: '\(' is no regular expression"),
        ("regex\ta{99999999999}\tA", r"line 3: .* is no regular expression"),
        ("regex\t((a*)*)*b\tA", r"line 3: .* takes too long"),
        ("regex\t((x+)+)+y\tA", r"line 3: .* takes too long"),
        ("regex\t(a|a|a|a|a)*b\tA", r"line 3: .* takes too long"),
    ],
)
def test_a_bad_line_is_an_error_that_names_file_and_line(tmp_path: Path, line: str, said: str) -> None:
    own = tmp_path / "own.tsv"
    own.write_text(f"# ours\nexact\tok\tOK\n{line}\n")
    with pytest.raises(MapError, match=f"{own}, {said}"):
        Maps(str(own)).current()


def test_a_map_that_cannot_be_read_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(MapError, match=r"gone\.tsv: No such file"):
        Maps(str(tmp_path / "gone.tsv")).current()
    (tmp_path / "latin.tsv").write_bytes(b"exact\tm\xe5l\tX\n")
    with pytest.raises(MapError, match="not UTF-8"):
        Maps(str(tmp_path / "latin.tsv")).current()


def test_a_changed_map_is_in_force_at_once_and_the_same_one_keeps_what_it_found(tmp_path: Path) -> None:
    own = tmp_path / "own.tsv"
    own.write_text("exact\tsolver\tOld\n")
    maps = Maps(str(own))
    first = maps.current()
    assert first["solver"] == Program("Old")
    assert maps.current() is first
    own.write_text("exact\tsolver\tNew\n")
    second = maps.current()
    assert second["solver"] == Program("New")
    assert second.version != first.version
    own.write_text("exact\tsolver\tOld\n")
    assert maps.current().version == first.version


def test_a_tag_holds_those_within_it() -> None:
    program = Program("VASP", ("chemistry/quantum", "licensed"))
    assert [program.within(tag) for tag in ("chemistry", "chemistry/quantum", "licensed", "chem", "quantum")] == [
        True, True, True, False, False,
    ]  # fmt: skip


def test_the_starter_map_knows_what_clusters_run() -> None:
    known = Maps().current()
    expected = {
        "vasp_std": "VASP", "gmx_mpi": "GROMACS", "lmp": "LAMMPS", "pw.x": "Quantum ESPRESSO", "python3.11": "Python",
        "pmemd.cuda": "Amber", "l502.exe": "Gaussian", "simpleFoam": "OpenFOAM", "wrf.exe": "WRF", "blastn": "BLAST",
        "relion_refine_m": "RELION", "Rscript": "R", "bash": "Shell", "cc1plus": "Compiler", "MATLAB": "MATLAB",
    }  # fmt: skip
    assert {command: known[command] and known[command].name for command in expected} == expected  # type: ignore[union-attr]
    assert known["my_own_thing"] is None
    assert len(known.names()) > 400
    rules = parse(Path(STARTER).read_text(), STARTER)
    assert all(rule.program.tags for rule in rules)
    licensed = {rule.program.name for rule in rules if rule.program.within("licensed")}
    assert {"VASP", "MATLAB", "Gaussian"} <= licensed


def test_many_rows_are_mapped_as_one_by_one() -> None:
    known = mapped("exact\ta\tA", "regex\tb.*\tB")
    assert known.programs(["a", "b1", "c", "a"]) == [Program("A"), Program("B"), None, Program("A")]
