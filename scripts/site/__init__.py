"""The documentation site: pages from `docs/`, built with MkDocs into files that need no other host.

`plan` lists the pages, `reference` cuts `docs/integrating.md` and the operators' pages into parts,
`directives` fills what is written by hand, `codes` and `drawings` make pages and pictures, `build` runs
MkDocs, `pack` makes the one file that the service serves, `links` checks every link of the result.
"""
