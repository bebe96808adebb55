"""Pages of the documentation that are written from the package: one module a page, with `page()`."""
