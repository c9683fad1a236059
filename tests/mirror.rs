//! The mirror against real servers: it equals the tree, whatever happens to the tree, the connection and the server.
//! And against trees in memory, for what needs no server.

#[path = "mirror"]
mod mirror {
    mod chaos;
    mod facts;
    mod grammar;
    mod harness;
    mod large;
    mod model;
    mod odd_trees;
    mod oracle;
    mod outages;
    mod pace;
    // One list for these trees and for those that fuzzing makes.
    #[path = "../../fuzz/properties/pages.rs"]
    #[expect(unreachable_pub, reason = "to the fuzz targets it is a library")]
    mod pages;
    mod roots;
    mod storms;
    mod transitions;
    mod values;
    mod writes;
}
