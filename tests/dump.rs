//! Dumps and loads, by the program as an operator runs it and by the library, against a real server. What is compared
//! is read in the plainest way there is.

#[path = "dump"]
mod dump {
    mod bounds;
    mod connection;
    mod interrupted;
    mod moving;
    mod redacted;
    mod refused;
    mod whole;
    mod world;
}
