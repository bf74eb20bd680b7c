"""Records of results: made from our standings and runs or from a page's words, checked, bundled, sent and fetched.

making        fields gathered one by one, each with its place or quote
ours          a standing or a run → a record, nothing typed
written       a TOML file in which a person says what a source reports → a record
reading       record files, hostile until read
checking      what one record must keep, beyond its schema
bundling      a record with its sources → a bundle with a page; the next version, the retracted one
shown         a record, a comparison, a loss report as lines for a terminal
exchange      the four conventions that records go out to and come in from, and what each has no place for
"""
