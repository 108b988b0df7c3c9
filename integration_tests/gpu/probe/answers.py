"""answers.md and answers.json."""
import json


def cell(text):
    return str(text).replace("|", "\\|").replace("\n", " ")


def write_answers(p, machine, rows):
    with open(p.out / "answers.md", "w", encoding="utf-8") as file:
        file.write("# Answers of scripts/gpu_probe\n\n")
        if p.options.simulated:
            file.write("**On the simulated GPU: this says that the script works, and nothing about any GPU.**\n\n")
        file.write("| machine | |\n|---|---|\n")
        for name, value in machine.items():
            file.write("| %s | %s |\n" % (name, cell(value)))
        file.write("\n| # | question | what was seen | verdict | commands (whole output in raw/) |\n"
                   "|---|---|---|---|---|\n")
        for row in rows:
            commands = "<br>".join("`%s`" % cell(command) for command in row["commands"])
            file.write("| %d | %s | %s | %s | %s |\n" % (row["number"], cell(row["question"]), cell(row["seen"]),
                                                        row["verdict"], commands))
    with open(p.out / "answers.json", "w", encoding="utf-8") as file:
        json.dump({"simulated": p.options.simulated, "machine": machine, "answers": rows}, file, indent=1)
