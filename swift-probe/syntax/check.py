"""Parses Swift sources and prints each place that is no Swift: `path:line:column`. For machines without a compiler."""

import sys
from pathlib import Path

import tree_sitter_swift
from tree_sitter import Language, Parser


def faults(node):
    """The innermost nodes that the grammar has no place for."""
    inner = [fault for child in node.children if child.has_error for fault in faults(child)]
    if inner or not (node.is_error or node.is_missing):
        return inner or [child for child in node.children if child.is_missing]
    return [node]


def main() -> int:
    parser = Parser(Language(tree_sitter_swift.language()))
    count = 0
    for path in sys.argv[1:]:
        tree = parser.parse(Path(path).read_bytes())
        if not tree.root_node.has_error:
            continue
        for fault in faults(tree.root_node) or [tree.root_node]:
            row, column = fault.start_point
            print(f"{path}:{row + 1}:{column + 1}: no Swift")
            count += 1
    return 1 if count else 0


sys.exit(main())
