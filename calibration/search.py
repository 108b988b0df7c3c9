"""The search of calibration/fit: the model in a process of its own, and a coordinate search over its parameters."""
import math
import subprocess


class Model:
    """estimate_rows --serve, and the parameters that it was told."""

    def __init__(self, tool, rows_path, more_path, empty_path):
        self.process = subprocess.Popen([tool, "--calibration", empty_path, "--serve", rows_path, more_path],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.values = {}

    def set(self, key, value):
        self.values[key] = value
        self.process.stdin.write("set %s %s %s %.9g\n" % (*key, value))

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer or answer.startswith("error"):
            raise RuntimeError("estimate_rows does not answer")
        return answer

    def select(self, name, indices):
        return int(self.ask("select %s %s" % (name, " ".join(map(str, indices)))))

    def loss(self, name):
        return float(self.ask("loss " + name))

    def predict(self, indices):
        self.select("prediction", indices)
        return [float(word) for word in self.ask("predict prediction").split()]

    def families(self, indices):
        """{index: family} of the rows that the model knows."""
        self.select("families", indices)
        return {int(index): family for index, family in (word.split(":") for word in self.ask("families families").split())}

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Parameter:
    """One number of the calibration: (gpu, family, name), where it starts, and between what it must lie."""

    def __init__(self, gpu, family, name, start, least, most, step=0.3):
        self.key, self.start, self.least, self.most, self.step = (gpu, family, name), start, least, most, step


def minimise(model, parameters, selections_of, rounds=30):
    """Coordinate search. selections_of(parameter): the selections whose loss depends on it."""
    losses = {}

    def refresh(names):
        return {name: model.loss(name) for name in names}

    for parameter in parameters:
        model.set(parameter.key, parameter.start)
    for parameter in parameters:
        for name in selections_of(parameter):
            losses.setdefault(name, None)
    losses = refresh(losses)
    steps = {parameter: parameter.step for parameter in parameters}
    for _ in range(rounds):
        moved = False
        for parameter in parameters:
            names = selections_of(parameter)
            if not names or steps[parameter] < 0.008:
                continue
            before = sum(losses[name] for name in names)
            old = model.values[parameter.key]
            better = False
            for factor in (1 + steps[parameter], 1 / (1 + steps[parameter])):
                value = min(max(old * factor, parameter.least), parameter.most)
                if value == old:
                    continue
                model.set(parameter.key, value)
                now = refresh(names)
                if sum(now.values()) < before - 1e-6:
                    losses.update(now)
                    better = moved = True
                    break
                model.set(parameter.key, old)
            if not better:
                steps[parameter] /= 2
        if not moved and all(step < 0.008 for step in steps.values()):
            break
    return losses


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))
