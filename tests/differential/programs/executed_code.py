"""Code made at run time under other file names, kept and dropped; addresses of dead code are used again."""

TEMPLATE = """
def function(argument):
    first = [argument] * {size}

    second = "text" * {size}
    return first, second, {{"key": bytes({size} + 100)}}
result = function({size})
"""


def execute(number):
    namespace = {}
    exec(compile(TEMPLATE.format(size=number), f"<made {number}>", "exec"), namespace)
    return namespace["result"]


def main():
    results = [execute(number) for number in range(300)]
    functions = []
    for number in range(50):
        namespace = {}
        exec(f"def f(x={number * 1000}):\n{chr(10) * number} return [x] * 3", namespace)
        functions.append(namespace["f"])
    values = [eval(f"[{number} * 1000, 'a' * {number}]") for number in range(400)]
    return results, functions, [function() for function in functions], values, type("Made", (), {"x": [1.5] * 3})()
