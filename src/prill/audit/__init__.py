"""Released results and pinned repositories → claims with pointers, in a bundle that anyone can verify offline.

listing, inventory     a tree's paths → what it holds, pure but for the reading
gitobjects, quoting, protocol      facts out of a commit, without running or checking out anything
witness, claims        files that say something; sentences taken apart
pointers, derive       places in JSON, and the closed language in which a number is derived from others
store, making          inputs by their digests; evidence computed from them, the first time and again
bundle, signing        files → a folder with manifest, statement and schemas
page, shown            the HTML, generated from pointers
verify, sheets         a bundle held against all of this, with nothing believed
changes                two bundles, place by place
"""
