//! What can be said on the command line.

mod change;
mod pending;
mod since;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use openvaala_protocol::approval::ApprovalMode;
use openvaala_protocol::id::ConversationId;
use openvaala_protocol::rpc::Right;
use openvaala_server::config::ProviderType;

pub(crate) use self::change::{ArchiveArgs, ForkArgs, RenameArgs, SetArgs, UnarchiveArgs};
pub(crate) use self::pending::{
    EditArgs, MoveArgs, PendingArgs, PendingCommand, SteerArgs, WithdrawArgs,
};
pub(crate) use self::since::Since;

/// Runs agents and keeps every conversation.
#[derive(Debug, Parser)]
#[command(
    name = "openvaala",
    version,
    about,
    propagate_version = true,
    subcommand_required = true
)]
#[command(
    after_help = "Examples:\n  openvaala exec \"look around this folder and tell me what it is\"\n  \
    openvaala list\n  openvaala provider add openai --base-url https://api.openai.com/v1 \\\n      \
    --model gpt-5.4-mini --api-key-env OPENAI_API_KEY --default"
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) dirs: DirArgs,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Where things are; every one of them also has a variable.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct DirArgs {
    /// Where openvaala.yaml and providers/ are [default: ~/.config/openvaala]
    #[arg(long, global = true, env = "OPENVAALA_CONFIG_DIR", value_name = "DIR")]
    pub(crate) config_dir: Option<PathBuf>,
    /// Where conversations are [default: ~/.local/share/openvaala]
    #[arg(long, global = true, env = "OPENVAALA_DATA_DIR", value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Where a running server is found and logs to [default: ~/.local/state/openvaala]
    #[arg(long, global = true, env = "OPENVAALA_STATE_DIR", value_name = "DIR")]
    pub(crate) state_dir: Option<PathBuf>,
}

/// Which server to use, if not that of this machine.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "A server elsewhere")]
pub(crate) struct ServerArgs {
    /// The server to use, as wss://HOST:PORT [default: that of this machine, which is started if none runs]
    #[arg(long, global = true, env = "OPENVAALA_URL", value_name = "URL")]
    pub(crate) url: Option<String>,
    /// A file with the token for it, which only you may read
    #[arg(long, global = true, env = "OPENVAALA_TOKEN_FILE", value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// A file with certificates to trust besides those of the system, PEM
    #[arg(long, global = true, env = "OPENVAALA_CA_FILE", value_name = "FILE")]
    pub(crate) ca_file: Option<PathBuf>,
    /// Say everything to another machine without encryption
    #[arg(long, global = true)]
    pub(crate) insecure: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Exec(ExecArgs),
    Send(SendArgs),
    Interrupt(InterruptArgs),
    List(ListArgs),
    Show(ShowArgs),
    Serve(ServeArgs),
    /// Builds the index of conversations anew from their logs
    ///
    /// The logs are read and never changed; what cannot be read is named. Goes through the server if one runs.
    #[command(after_help = "Examples:\n  openvaala reindex\n  \
        openvaala reindex --data-dir ~/restored-from-backup")]
    Reindex,
    Delete(DeleteArgs),
    Restore(RestoreArgs),
    #[command(subcommand)]
    Trash(TrashCommand),
    Check(CheckArgs),
    #[command(subcommand)]
    Provider(ProviderCommand),
    #[command(subcommand)]
    Config(ConfigCommand),
    #[command(subcommand)]
    Token(TokenCommand),
    Completions(CompletionsArgs),
    Rename(RenameArgs),
    Archive(ArchiveArgs),
    Unarchive(UnarchiveArgs),
    Fork(ForkArgs),
    Set(SetArgs),
    Compact(CompactArgs),
    Approvals(ApprovalsArgs),
    Approve(ApproveArgs),
    Deny(DenyArgs),
    #[command(subcommand)]
    Pending(PendingCommand),
}

/// Has an agent do something in this folder, and shows what it does
///
/// The answer goes to standard output as it comes; notes on tools go to standard error. A server is started if none
/// runs. Exit codes: 0 completed, 1 failed, 2 wrong usage, 3 refused, 130 interrupted.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  openvaala exec \"what does this project do?\"\n  \
    openvaala exec --cwd ~/work --model openai/gpt-5.4-mini \"fix the failing test\"\n  \
    git diff | openvaala exec \"review this change\"\n  \
    openvaala exec - < prompt.md\n  \
    openvaala exec --last \"and now the tests\"\n  \
    openvaala exec --image screenshot.png \"what is wrong here?\"\n  \
    openvaala exec --output-schema answer.json \"which licence is this?\"\n  \
    openvaala exec --json \"list the open questions in NOTES.md\""
)]
pub(crate) struct ExecArgs {
    #[command(flatten)]
    pub(crate) prompt: PromptArgs,
    /// One event a line, as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// The folder to work in [default: this one]
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
    /// The model to ask, as PROVIDER/MODEL [default: the agent's or the configured one]
    #[arg(long, value_name = "PROVIDER/MODEL")]
    pub(crate) model: Option<String>,
    /// The agent that does it [default: the default agent]
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Go on with a conversation: its id, or the beginning of it
    #[arg(long, value_name = "ID", conflicts_with = "last")]
    pub(crate) resume: Option<String>,
    /// Go on with the conversation that was last used in this folder
    #[arg(long)]
    pub(crate) last: bool,
    /// A file with a JSON Schema that the answer shall follow; nothing but the answer goes to standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) output_schema: Option<PathBuf>,
    /// Which tool calls run without a question, from now on in this conversation [default: as configured]
    ///
    /// What is asked is asked here on a terminal; without one it is refused, and the exit code is 3.
    #[arg(long, value_name = "MODE", value_enum)]
    pub(crate) approval: Option<ApprovalArg>,
}

/// Which tool calls run without a question.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum ApprovalArg {
    /// What only reads; everything else is denied
    ReadOnly,
    /// What only reads; everything else is asked
    Ask,
    /// As ask, and patches of files in the folder
    AutoEdit,
    /// Everything
    Full,
}

impl From<ApprovalArg> for ApprovalMode {
    fn from(arg: ApprovalArg) -> Self {
        match arg {
            ApprovalArg::ReadOnly => Self::ReadOnly,
            ApprovalArg::Ask => Self::Ask,
            ApprovalArg::AutoEdit => Self::AutoEdit,
            ApprovalArg::Full => Self::Full,
        }
    }
}

/// Lists the tool calls that wait for somebody to say whether they may run
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  openvaala approvals\n  openvaala approvals --json")]
pub(crate) struct ApprovalsArgs {
    /// One a line, as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Lets a tool call run that waits for an approval
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  openvaala approvals\n  openvaala approve 0192d3f5\n  openvaala approve 0192d3f5 --always"
)]
pub(crate) struct ApproveArgs {
    /// The approval's id, or the end of it
    pub(crate) id: String,
    /// Let the same call run without a question for the rest of this session
    #[arg(long, conflicts_with = "always")]
    pub(crate) session: bool,
    /// Let the same call run without a question everywhere: the rule is written to the configuration
    #[arg(long)]
    pub(crate) always: bool,
}

/// Refuses a tool call that waits for an approval; the turn goes on without it
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  openvaala deny 0192d3f5\n  openvaala deny 0192d3f5 \"use the other branch\""
)]
pub(crate) struct DenyArgs {
    /// The approval's id, or the end of it
    pub(crate) id: String,
    /// What to tell the model
    pub(crate) message: Option<String>,
}

/// What is said to an agent.
#[derive(Args, Debug)]
pub(crate) struct PromptArgs {
    /// What to do; `-` reads it from standard input
    ///
    /// Text that is piped in besides a prompt is added to it. A pipe in which nothing comes for a second is left alone;
    /// see --stdin.
    pub(crate) prompt: String,
    /// An image to look at: PNG, JPEG, GIF or WebP; may be given more than once
    #[arg(long = "image", value_name = "FILE")]
    pub(crate) images: Vec<PathBuf>,
    /// Add standard input to the prompt, however long it takes to begin
    #[arg(long)]
    pub(crate) stdin: bool,
}

/// Says something in a conversation and leaves; the work goes on in the server
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  openvaala send 0192d3f5 \"and then update the changelog\"\n  \
    openvaala send 0192d3f5 --steer \"leave the generated files alone\"\n  \
    openvaala send 0192d3f5 --follow \"what have you done?\""
)]
pub(crate) struct SendArgs {
    /// The conversation's id, or the beginning of it
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) prompt: PromptArgs,
    /// Have the running turn read it before it goes on [default: it waits for that turn's end]
    #[arg(long)]
    pub(crate) steer: bool,
    /// Stay and show what comes of it, as `exec` does
    #[arg(long)]
    pub(crate) follow: bool,
    /// One event a line, as JSON
    #[arg(long, requires = "follow")]
    pub(crate) json: bool,
}

/// Interrupts what a conversation does now; what it has done is kept
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  openvaala interrupt 0192d3f5")]
pub(crate) struct InterruptArgs {
    /// The conversation's id, or the beginning of it
    pub(crate) id: String,
    /// Also the agents that work in the background
    #[arg(long)]
    pub(crate) all: bool,
}

/// Puts a summary in the place of what was said in a conversation, so that it goes on with less
///
/// The model of the conversation writes it. What you said stays word for word as far as there is room, and all that was
/// said and done stays in the log. While a turn runs there is none: wait for its end.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  openvaala compact 0192d3f5\n  \
    openvaala compact 0192d3f5 \"keep the numbers of the benchmark\"\n  \
    openvaala compact 0192d3f5 --preview\n  openvaala compact 0192d3f5 --undo")]
pub(crate) struct CompactArgs {
    /// The conversation's id, or the beginning of it
    pub(crate) id: String,
    /// What the summary should look at above all
    pub(crate) guidance: Option<String>,
    /// Show what the summary would be, and change nothing
    #[arg(long)]
    pub(crate) preview: bool,
    /// Take the last summary back: the conversation goes on with what it stood for and what was said since
    #[arg(long, conflicts_with_all = ["guidance", "preview"])]
    pub(crate) undo: bool,
}

/// Deletes conversations; they lie in the trash until it is emptied
///
/// What runs in one of them is interrupted. `openvaala restore` brings it back with everything as it was.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  openvaala delete 0192d3f5\n  openvaala delete 0192d3f5 0192d401"
)]
pub(crate) struct DeleteArgs {
    /// The conversations' ids, or the beginnings of them
    #[arg(required = true, value_name = "ID")]
    pub(crate) ids: Vec<String>,
}

/// Brings a conversation back from the trash
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  openvaala trash list\n  openvaala restore 0192d3f5")]
pub(crate) struct RestoreArgs {
    /// The conversation's id, or the beginning of it
    pub(crate) id: String,
}

/// Shows or empties the trash, where deleted conversations are
#[derive(Debug, Subcommand)]
pub(crate) enum TrashCommand {
    /// Lists deleted conversations that can be restored, the last deleted first
    #[command(after_help = "Examples:\n  openvaala trash list\n  openvaala trash list --json")]
    List {
        /// One conversation a line, as JSON
        #[arg(long)]
        json: bool,
    },
    Empty(EmptyArgs),
}

/// Removes deleted conversations for ever
///
/// Nothing else does, unless `trash: {keep_days: N}` is set in openvaala.yaml.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  openvaala trash empty\n  openvaala trash empty --older-than 30d --yes\n  \
    openvaala trash empty 0192d3f5"
)]
pub(crate) struct EmptyArgs {
    /// Only these: their ids, or the beginnings of them [default: all]
    #[arg(value_name = "ID")]
    pub(crate) ids: Vec<String>,
    /// Only those that were deleted at least so long ago: 30m, 12h, 7d
    #[arg(long, value_name = "TIME", value_parser = since::parse_age)]
    pub(crate) older_than: Option<Duration>,
    /// Do not ask
    #[arg(long)]
    pub(crate) yes: bool,
}

/// Reads all conversations and says what is damaged, where and how much
///
/// Nothing is changed, and a server may run meanwhile. Exit code 0 if all is sound or was put right, 1 if not.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  openvaala check\n  openvaala check 0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d --json\n  \
    openvaala check --repair"
)]
pub(crate) struct CheckArgs {
    /// Only this conversation, also in the trash: its whole id
    pub(crate) id: Option<ConversationId>,
    /// Put right what can be, without throwing a byte away; goes through the server if one runs
    #[arg(long)]
    pub(crate) repair: bool,
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Prints what a shell needs to complete commands and flags
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    openvaala completions bash > ~/.local/share/bash-completion/completions/openvaala\n  \
    openvaala completions zsh > ~/.zfunc/_openvaala\n  \
    openvaala completions fish > ~/.config/fish/completions/openvaala.fish")]
pub(crate) struct CompletionsArgs {
    /// Which shell
    pub(crate) shell: Shell,
}

/// Runs the server in the foreground, or looks after a running one
#[derive(Args, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  openvaala serve\n  openvaala serve --listen 127.0.0.1:9000\n  openvaala serve --replace\n  \
    openvaala serve --listen 0.0.0.0:8791 --tls-certificate server.crt --tls-key server.key\n  \
    OPENVAALA_LOG=debug openvaala serve"
)]
pub(crate) struct ServeArgs {
    #[command(subcommand)]
    pub(crate) command: Option<ServeCommand>,
    /// The address to listen on [default: 127.0.0.1:8790, or any free port if that is taken]
    ///
    /// One that other machines can reach is listened on besides, for clients with a token of their own (`openvaala token create`);
    /// it needs a certificate.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<SocketAddr>,
    /// The certificate for clients of other machines, PEM
    #[arg(long, value_name = "FILE", requires_all = ["listen", "tls_key"])]
    pub(crate) tls_certificate: Option<PathBuf>,
    /// The key of the certificate, PEM
    #[arg(long, value_name = "FILE", requires_all = ["listen", "tls_certificate"])]
    pub(crate) tls_key: Option<PathBuf>,
    /// Let other machines connect without encryption: only in a network that nobody else can read
    #[arg(long, requires = "listen", conflicts_with = "tls_certificate")]
    pub(crate) insecure_listen: bool,
    /// Take the place of the running server: it may work for 30 seconds more, then its turns are interrupted
    #[arg(long)]
    pub(crate) replace: bool,
    /// Started by a client: end after 30 idle minutes
    #[arg(long, hide = true)]
    pub(crate) client_started: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ServeCommand {
    /// Stops the running server
    ///
    /// Turns that run may end by themselves first; what runs after the timeout is interrupted, and what it has done is written
    /// down.
    #[command(after_help = "Examples:\n  openvaala serve stop\n  openvaala serve stop --timeout 0")]
    Stop {
        /// How long to wait for running turns, in seconds
        #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u32).range(0..=3600))]
        timeout: u32,
    },
    /// Shows the end of the running server's log
    #[command(
        after_help = "Examples:\n  openvaala serve logs\n  openvaala serve logs -n 500\n  openvaala serve logs --follow"
    )]
    Logs {
        /// How many lines to show
        #[arg(short = 'n', long, value_name = "LINES", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1000))]
        lines: u32,
        /// Go on with what it says from now on, until the server ends
        #[arg(long)]
        follow: bool,
    },
    /// Tells how the running server is; exit code 1 if none runs
    #[command(after_help = "Examples:\n  openvaala serve status\n  openvaala serve status --json")]
    Status {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
}

/// Lists conversations, the last used first
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  openvaala list\n  openvaala list --limit 5 --json\n  \
    openvaala list --status running\n  openvaala list --cwd . --search \"failing test\"\n  \
    openvaala list --since 7d --all\n  openvaala list --archived"
)]
pub(crate) struct ListArgs {
    /// How many to list
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) limit: u32,
    /// Go on where a list has ended: what it said there
    #[arg(long)]
    pub(crate) cursor: Option<String>,
    /// List to the end
    #[arg(long, conflicts_with = "limit")]
    pub(crate) all: bool,
    /// Only those that are at work, or only those that are not
    #[arg(long)]
    pub(crate) status: Option<StatusArg>,
    /// Only those that work in this folder itself
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
    /// Only those whose title has this text
    #[arg(long, value_name = "TEXT")]
    pub(crate) search: Option<String>,
    /// Only those used since then: 30m, 12h, 7d, or a day such as 2026-12-01 (UTC)
    #[arg(long, value_name = "TIME", value_parser = since::parse)]
    pub(crate) since: Option<Since>,
    /// Only those that are archived, which are left out otherwise
    #[arg(long)]
    pub(crate) archived: bool,
    /// One conversation a line, as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Whether a conversation is at work.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum StatusArg {
    /// A turn runs
    Running,
    /// No turn runs
    Idle,
}

/// Shows what was said and done in a conversation
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  openvaala show 0192d3f5\n  \
    openvaala show --markdown 0192d3f5 > transcript.md\n  \
    openvaala show --json 0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d")]
pub(crate) struct ShowArgs {
    /// The conversation's id, or the beginning of it
    pub(crate) id: String,
    /// One item a line, as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// A transcript in Markdown
    #[arg(long, conflicts_with = "json")]
    pub(crate) markdown: bool,
}

/// Looks after model providers
#[derive(Debug, Subcommand)]
pub(crate) enum ProviderCommand {
    /// Adds a model provider
    #[command(
        after_help = "Examples:\n  openvaala provider add openai --base-url https://api.openai.com/v1 \\\n      \
        --model gpt-5.4-mini --api-key-env OPENAI_API_KEY --default\n  \
        openvaala provider add local --base-url http://127.0.0.1:8080/v1 --model any\n  \
        openvaala provider add openai --type openai_responses --base-url https://api.openai.com/v1 \\\n      \
        --model gpt-5.4-mini --api-key-env OPENAI_API_KEY"
    )]
    Add(AddArgs),
    /// Changes a provider that was added; what is left out stays as it is
    #[command(
        after_help = "Examples:\n  openvaala provider edit openai --model gpt-5.4\n  \
        openvaala provider edit work --api-key-stdin < work.key"
    )]
    Edit(EditProviderArgs),
    /// Removes a provider that was added, unless the configuration still names it
    #[command(after_help = "Example:\n  openvaala provider remove work")]
    Remove {
        /// Its name
        name: String,
    },
    /// Makes a model that of new conversations
    #[command(after_help = "Example:\n  openvaala provider default openai/gpt-5.4")]
    Default {
        /// The model, as PROVIDER/MODEL
        model: String,
    },
    /// Lists the providers and the model that is asked by default
    #[command(
        after_help = "Examples:\n  openvaala provider list\n  openvaala provider list --json"
    )]
    List {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Asks a provider for one word; exit code 1 if it does not answer as it should
    #[command(
        after_help = "Examples:\n  openvaala provider test\n  openvaala provider test openai"
    )]
    Test {
        /// Which provider [default: the one that is asked by default]
        name: Option<String>,
    },
}

#[derive(Args, Debug)]
pub(crate) struct AddArgs {
    /// A name of your choice
    pub(crate) name: String,
    /// What it speaks: openai_chat, which nearly every service does, openai_responses, or
    /// anthropic_messages
    #[arg(long = "type", value_name = "TYPE", default_value_t)]
    pub(crate) speaks: ProviderType,
    #[arg(
        long,
        value_name = "URL",
        help = "Where its API begins, such as https://api.openai.com/v1"
    )]
    pub(crate) base_url: String,
    /// The model to ask it for
    #[arg(long)]
    pub(crate) model: String,
    /// The variable of the server's environment that has the key
    #[arg(long, value_name = "VARIABLE", conflicts_with = "api_key_stdin")]
    pub(crate) api_key_env: Option<String>,
    /// Read the key from standard input; it is written to the provider's file, which only you can read
    #[arg(long)]
    pub(crate) api_key_stdin: bool,
    /// Ask it in new conversations
    #[arg(long)]
    pub(crate) default: bool,
}

#[derive(Args, Debug)]
pub(crate) struct EditProviderArgs {
    /// Its name
    pub(crate) name: String,
    /// What it speaks: openai_chat, openai_responses, or anthropic_messages
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) speaks: Option<ProviderType>,
    /// Where its API begins
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// The model to ask it for
    #[arg(long)]
    pub(crate) model: Option<String>,
    /// The variable of the server's environment that has the key
    #[arg(long, value_name = "VARIABLE", conflicts_with = "api_key_stdin")]
    pub(crate) api_key_env: Option<String>,
    /// Read the key from standard input; it is written to the provider's file, which only its owner can read
    #[arg(long)]
    pub(crate) api_key_stdin: bool,
}

/// Looks after the tokens by which clients are let in
#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Makes a token with a name and shows it, this once
    ///
    /// The server keeps no copy of it. Rights: watch (see everything), send (begin, say, interrupt), approve (answer whether
    /// tools may run), admin (look after the server); none brings another one.
    #[command(
        after_help = "Examples:\n  openvaala token create phone --rights watch,approve\n  \
        openvaala token create laptop --rights watch,send,approve > laptop.token"
    )]
    Create {
        /// A name of your choice: a-z A-Z 0-9 _ -
        name: String,
        /// What it allows, with commas between
        #[arg(long, value_delimiter = ',', required = true, value_name = "RIGHTS")]
        rights: Vec<Right>,
    },
    /// Lists the tokens with their rights
    #[command(after_help = "Examples:\n  openvaala token list\n  openvaala token list --json")]
    List {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Makes a token worthless; connections that were opened with it end, turns go on
    #[command(after_help = "Example:\n  openvaala token revoke phone")]
    Revoke {
        /// Its name
        name: String,
    },
    /// Gives the running server a new token of its own; local clients find it in the discovery file
    ///
    /// Connections that are open with the old one end, turns go on. Tokens with names stay.
    #[command(after_help = "Example:\n  openvaala token rotate")]
    Rotate,
}

/// Looks after the configuration
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Checks every file and names the first mistake of each; exit code 1 if there is one
    #[command(after_help = "Examples:\n  openvaala config check\n  \
        openvaala config check --config-dir ./draft")]
    Check,
    /// Shows the main file of the server's configuration, and what is wrong with it
    #[command(after_help = "Examples:\n  openvaala config show > openvaala.yaml\n  \
        openvaala config show --json")]
    Show {
        /// As JSON, with the revision
        #[arg(long)]
        json: bool,
    },
    /// Gives the main file of the server's configuration another text, and puts it in force
    ///
    /// If it does not load everything stays as it was, and the mistake is named.
    #[command(after_help = "Examples:\n  openvaala config set openvaala.yaml\n  \
        openvaala config set - --revision 0123456789abcdef < openvaala.yaml")]
    Set {
        /// The file with the text; - reads standard input
        file: PathBuf,
        /// Only if it still is at this revision
        #[arg(long, value_name = "REVISION")]
        revision: Option<String>,
    },
}

#[cfg(test)]
mod tests;
