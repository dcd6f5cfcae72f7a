"""The document page of a model or of one node, as text, Markdown or JSON."""

from specc.page.model import Page, model_page
from specc.page.node import NodePage, node_page
from specc.page.print import node_values, page_markdown, page_values, print_node, print_page

__all__ = [
    "NodePage",
    "Page",
    "model_page",
    "node_page",
    "node_values",
    "page_markdown",
    "page_values",
    "print_node",
    "print_page",
]
