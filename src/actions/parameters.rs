//! The parameters of actions besides their targets: a row for each.
//!
//! Derived from a row are the field of [`ActionParameters`] and of audit records, those of the API's bodies with their
//! description, those of forms, and the argument of the command line. A new parameter is a row here, the actions that
//! take it in the table of actions, and the code that uses its value; one of a new type is also a [`ParameterValue`].

use serde::{Deserialize, Serialize};

use queuekeeper_queue::id::Priority;
use queuekeeper_queue::state::JobState;

mod accepted;
pub(super) mod check;
mod input;
mod value;

pub use accepted::AcceptedParameter;
pub use input::{Argument, Input, InputWords};
use value::{PRIORITIES, resumable};
pub use value::{ParameterValue, WrongValue};

/// Passes the rows to a macro, after its own arguments.
macro_rules! action_parameters {
    ($then:ident! { $($with:tt)* }) => {
        $then! {
            { $($with)* }
            /// The state to resume a job in; by default the one after its last successful state.
            To to: Option<JobState> as Option<String> {
                body: (example = "downloading"),
                list: ["The state to resume jobs in." ()],
                input: Input::Choice {
                    values: resumable,
                    page: InputWords { label: "Resume it in", usual: "the state after its last successful one", each: "" },
                    bar: InputWords { label: "State to resume in", usual: "in the next state", each: "in " },
                },
                argument: Argument::Option { long: "to", value: "STATE", help: "The state in which to resume" },
            }
            /// The priority to set: 0, the most urgent, to 99.
            Priority priority: Option<Priority> as Option<u8> {
                body: (minimum = 0, maximum = 99),
                list: ["The priority to set." (minimum = 0, maximum = 99)],
                input: Input::Number {
                    bounds: (0, 99),
                    range: PRIORITIES,
                    page: InputWords { label: "Priority", usual: "", each: "" },
                    bar: InputWords { label: "New priority, 0 to 99", usual: "0–99", each: "" },
                },
                argument: Argument::Number { value: "NUMBER", help: "The priority, for `priority`" },
            }
            /// Executes it although it would normally be refused: breaks a lock that is not a fault, releases a batch
            /// whose collection is held, repairs or purges what is locked.
            Force force: bool as bool {
                body: (),
                list: [],
                input: Input::Checkbox,
                argument: Argument::Flag { long: "force" },
            }
            /// Also releases the held batches and jobs of the collection.
            WithJobs with_jobs: bool as bool {
                body: (),
                list: [],
                input: Input::Checkbox,
                argument: Argument::Flag { long: "with-jobs" },
            }
        }
    };
}

pub(crate) use action_parameters;

macro_rules! define {
    ({} $(
        $(#[$doc:meta])* $parameter:ident $field:ident: $type:ty as $written:ty {
            body: $body:tt,
            list: [$($list:tt)*],
            $($spec:tt)*
        }
    )+) => {
        /// The parameters of an action besides its target.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        pub struct ActionParameters {
            $( $(#[$doc])* pub $field: $type, )+
        }

        /// The same as the API and audit records have them.
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default)]
        pub struct WrittenParameters {
            $( $(#[$doc])* #[serde(skip_serializing_if = "is_default")] pub $field: $written, )+
        }

        /// A parameter.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Parameter { $( $(#[$doc])* $parameter, )+ }

        impl Parameter {
            /// Every parameter, in the order in which they are listed.
            pub const ALL: [Self; [$(Self::$parameter),+].len()] = [$(Self::$parameter),+];

            /// Its row.
            #[must_use]
            pub const fn spec(self) -> &'static ParameterSpec {
                match self {
                    $(Self::$parameter => {
                        const { &ParameterSpec {
                            name: stringify!($field),
                            is_for_lists: !stringify!($($list)*).is_empty(),
                            $($spec)*
                        } }
                    })+
                }
            }
        }

        impl ActionParameters {
            /// Whether the parameter has a value other than its default.
            #[must_use]
            pub fn has(self, parameter: Parameter) -> bool {
                match parameter { $(Parameter::$parameter => !is_default(&self.$field),)+ }
            }

            /// The value of a parameter as a form has it; empty for none.
            #[must_use]
            pub fn text(self, parameter: Parameter) -> String {
                match parameter { $(Parameter::$parameter => self.$field.text(),)+ }
            }

            /// Sets a parameter to the value that a form has; an empty one is none.
            ///
            /// # Errors
            /// When the text is no value of the parameter.
            pub fn set(&mut self, parameter: Parameter, text: &str) -> Result<(), WrongValue> {
                match parameter { $(Parameter::$parameter => self.$field = ParameterValue::parse(text)?,)+ }
                Ok(())
            }

            /// The same as the API and audit records have them.
            #[must_use]
            pub fn written(self) -> WrittenParameters {
                WrittenParameters { $($field: self.$field.written(),)+ }
            }
        }

        impl WrittenParameters {
            /// The parameters.
            ///
            /// # Errors
            /// When a value is none of its parameter.
            pub fn read(self) -> Result<ActionParameters, WrongValue> {
                Ok(ActionParameters { $($field: ParameterValue::read(self.$field)?,)+ })
            }
        }
    };
}

action_parameters! { define! {} }

/// A row of the table.
#[derive(Debug)]
pub struct ParameterSpec {
    /// The name in the API, in forms and in audit records.
    pub name: &'static str,
    /// Whether an action on each item of a list may have it.
    pub is_for_lists: bool,
    /// How it is entered on a page.
    pub input: Input,
    /// How it is set on the command line.
    pub argument: Argument,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Parameter {
    /// The parameter of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|parameter| parameter.name() == name)
    }

    /// The name in the API, in forms and in audit records.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.spec().name
    }
}
