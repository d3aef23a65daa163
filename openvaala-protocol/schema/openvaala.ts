// Generated from the Rust types of openvaala-protocol; do not edit.

/** The version of the wire protocol; must be the server's own. */
export const PROTOCOL_VERSION = "0.1";

/** The path of the WebSocket endpoint. */
export const ENDPOINT = "/api/v1/openvaala";

/** Parameters and result of every method. */
export interface Methods {
  "initialize": { params: InitializeParams; result: InitializeResult };
  "server/status": { params: ServerStatusParams; result: ServerStatusResult };
  "server/shutdown": { params: ServerShutdownParams; result: ServerShutdownResult };
  "server/reload": { params: ServerReloadParams; result: ServerReloadResult };
  "server/logs": { params: ServerLogsParams; result: ServerLogsResult };
  "server/reindex": { params: ServerReindexParams; result: ServerReindexResult };
  "server/check": { params: ServerCheckParams; result: ServerCheckResult };
  "conversation/create": { params: ConversationCreateParams; result: ConversationCreateResult };
  "conversation/list": { params: ConversationListParams; result: ConversationListResult };
  "conversation/get": { params: ConversationGetParams; result: ConversationGetResult };
  "conversation/open": { params: ConversationOpenParams; result: ConversationOpenResult };
  "conversation/close": { params: ConversationCloseParams; result: ConversationCloseResult };
  "conversation/delete": { params: ConversationDeleteParams; result: ConversationDeleteResult };
  "conversation/restore": { params: ConversationRestoreParams; result: ConversationRestoreResult };
  "trash/list": { params: TrashListParams; result: TrashListResult };
  "trash/empty": { params: TrashEmptyParams; result: TrashEmptyResult };
  "conversation/subscribe": { params: ConversationSubscribeParams; result: ConversationSubscribeResult };
  "conversation/unsubscribe": { params: ConversationUnsubscribeParams; result: ConversationUnsubscribeResult };
  "session/send": { params: SessionSendParams; result: SessionSendResult };
  "session/tree": { params: SessionTreeParams; result: SessionTreeResult };
  "session/interrupt": { params: SessionInterruptParams; result: SessionInterruptResult };
  "session/items": { params: SessionItemsParams; result: SessionItemsResult };
  "session/blob": { params: SessionBlobParams; result: SessionBlobResult };
  "turn/get": { params: TurnGetParams; result: TurnGetResult };
  "turn/list": { params: TurnListParams; result: TurnListResult };
  "terminal/list": { params: TerminalListParams; result: TerminalListResult };
  "terminal/read": { params: TerminalReadParams; result: TerminalReadResult };
  "terminal/write": { params: TerminalWriteParams; result: TerminalWriteResult };
  "terminal/kill": { params: TerminalKillParams; result: TerminalKillResult };
  "agent/list": { params: AgentListParams; result: AgentListResult };
  "model/list": { params: ModelListParams; result: ModelListResult };
  "model/default/set": { params: ModelDefaultSetParams; result: ModelDefaultSetResult };
  "config/get": { params: ConfigGetParams; result: ConfigGetResult };
  "config/validate": { params: ConfigValidateParams; result: ConfigValidateResult };
  "config/set": { params: ConfigSetParams; result: ConfigSetResult };
  "executor/list": { params: ExecutorListParams; result: ExecutorListResult };
  "executor/test": { params: ExecutorTestParams; result: ExecutorTestResult };
  "executor/browse": { params: ExecutorBrowseParams; result: ExecutorBrowseResult };
  "executor/complete": { params: ExecutorCompleteParams; result: ExecutorCompleteResult };
  "usage/get": { params: UsageGetParams; result: UsageGetResult };
  "provider/list": { params: ProviderListParams; result: ProviderListResult };
  "provider/add": { params: ProviderAddParams; result: ProviderAddResult };
  "provider/remove": { params: ProviderRemoveParams; result: ProviderRemoveResult };
  "provider/edit": { params: ProviderEditParams; result: ProviderEditResult };
  "provider/test": { params: ProviderTestParams; result: ProviderTestResult };
  "session/pending/list": { params: SessionPendingListParams; result: SessionPendingListResult };
  "session/pending/update": { params: SessionPendingUpdateParams; result: SessionPendingChangeResult };
  "session/pending/withdraw": { params: SessionPendingWithdrawParams; result: SessionPendingChangeResult };
  "session/pending/reorder": { params: SessionPendingReorderParams; result: SessionPendingChangeResult };
  "session/resume": { params: SessionResumeParams; result: SessionResumeResult };
  "session/update": { params: SessionUpdateParams; result: SessionUpdateResult };
  "conversation/update": { params: ConversationUpdateParams; result: ConversationUpdateResult };
  "conversation/fork": { params: ConversationForkParams; result: ConversationForkResult };
  "session/compact": { params: SessionCompactParams; result: SessionCompactResult };
  "session/uncompact": { params: SessionUncompactParams; result: SessionUncompactResult };
  "approval/list": { params: ApprovalListParams; result: ApprovalListResult };
  "approval/answer": { params: ApprovalAnswerParams; result: ApprovalAnswerResult };
  "token/create": { params: TokenCreateParams; result: TokenCreateResult };
  "token/list": { params: TokenListParams; result: TokenListResult };
  "token/revoke": { params: TokenRevokeParams; result: TokenRevokeResult };
  "token/rotate": { params: TokenRotateParams; result: TokenRotateResult };
  "token/bind": { params: TokenBindParams; result: TokenBindResult };
}

/** Parameters of every notification. */
export interface Notifications {
  "conversation/entry": ConversationEntryParams;
  "conversation/live": ConversationLiveParams;
  "conversation/gap": ConversationGapParams;
  "conversation/deleted": ConversationDeletedParams;
  "server/progress": ServerProgressParams;
  "server/stopping": ServerStoppingParams;
}

/** The body of every kind of item. */
export interface ItemBodies {
  "user_message": UserMessage;
  "assistant_message": AssistantMessage;
  "agent_message": AgentMessage;
  "reasoning": Reasoning;
  "tool_call": ToolCall;
  "tool_result": ToolResult;
  "model_error": ModelError;
  "context_summary": ContextSummary;
  "model_change": ModelChange;
  "executor_change": ExecutorChange;
  "skill": Skill;
  "instructions": Instructions;
  "hook_run": HookRun;
  "interruption": Interruption;
  "approval": Approval;
  "plan": Plan;
  "retry_notice": RetryNotice;
  "agent_change": AgentChange;
  "summary_undone": SummaryUndone;
}

/** An item of a kind that this version knows; there may be others. */
export type KnownItem = {
  [Kind in keyof ItemBodies]: Item & { kind: Kind; body: ItemBodies[Kind] };
}[keyof ItemBodies];

/** The codes of errors by their names. */
export const ErrorCodes = {
  /** The message is no JSON, or its parameters are nested deeper than 127 levels. */
  parse_error: -32700,
  /** The message is no JSON-RPC 2.0 request, is a batch, comes before `initialize`, or has another protocol version. */
  invalid_request: -32600,
  /** There is no such method. */
  method_not_found: -32601,
  /** The parameters do not fit the method; the message names the field. */
  invalid_params: -32602,
  /** The runtime could not do it; the message says why. */
  runtime: -32000,
  /** The session runs a turn and the request asked for an idle one. */
  session_busy: -32001,
  /** There is no such conversation. */
  conversation_not_found: -32002,
  /** There is no such session in that conversation. */
  session_not_found: -32003,
  /** There is no such background command. */
  terminal_not_found: -32004,
  /** The server has too much to do; try again a little later. */
  overloaded: -32005,
  /** There is a conversation of that id already where this one would go: among the others, or in the trash. */
  conversation_exists: -32006,
  /** No such input waits: it was never sent, or was withdrawn. */
  input_not_found: -32011,
  /** The input does not wait any more: a turn has taken it. */
  input_taken: -32012,
  /** The order does not name exactly the inputs that wait; the message says what differs. List them and try again. */
  queue_changed: -32013,
  /** There is no such question in that session. */
  approval_not_found: -32007,
  /** Somebody else has answered this question first, or it was taken back; `data` is the approval as it is now. */
  approval_answered: -32008,
  /** There is no such turn in that conversation. */
  turn_not_found: -32020,
  /** Something runs or waits in the conversation, or somebody watches it; the message says what. */
  conversation_busy: -32021,
  /** The token of this connection does not allow that, or is no longer good; the message names the right it lacks. */
  forbidden: -32022,
  /** There is a token of that name already. */
  token_exists: -32023,
  /** There is no token of that name. */
  token_not_found: -32024,
  /** The configuration was changed meanwhile: look at it again. */
  config_changed: -32025,
} as const;

/** A configured agent. */
export type Agent = {
  /** Its name. */
  name: string,
  /** What it is for. */
  description?: string | null,
  /** The model of conversations that it begins; `null` means the default one. */
  model?: ModelRef | null,
  /** How hard that model shall think; `null` leaves it to `model`. */
  effort?: string | null,
  /** The names of its tools; `null` means all. */
  tools?: Array<string> | null, };

/** The session goes on with another agent. */
export type AgentChange = {
  /** The agent until now; `null` is the default one. */
  from: string | null,
  /** The agent from now on; `null` is the default one. */
  to: string | null, };

/** Parameters of `agent/list`. */
export type AgentListParams = Record<symbol, never>;

/** Result of `agent/list`. */
export type AgentListResult = {
  /** The agents by name; the default one, which has no name, is not among them. */
  agents: Array<Agent>, };

/** What one agent of the conversation said to another. */
export type AgentMessage = {
  /** The session that it comes from. */
  from: SessionId,
  /** The path of the agent that works there, such as `main/review`. */
  path?: string | null,
  /** How the sender's turn ended, if the message says what came of it. */
  ended?: TurnStatus | null,
  /** Text and images, in order. */
  content: Array<Content>,
  /** Whether it was read in the middle of a running turn. */
  steer?: boolean, };

/** A question whether a tool call may run, and what was answered.
 *
 * It is written when it is asked and once more, with the same `pos`, when it is answered or taken back.
 */
export type Approval = {
  /** The item of the call. */
  call: ItemId,
  /** Whether and how it was answered. */
  state: ApprovalState,
  /** The tool that is to run. */
  tool: string,
  /** Its arguments as JSON text, exactly as they would be given to it. */
  arguments: string,
  /** Where it would run; `null` for a tool of the runtime itself. */
  executor?: ExecutorId | null,
  /** The work location there. */
  folder?: string | null,
  /** SHA-256 over tool, arguments, executor and folder, in hex; a runtime without that function has none. */
  hash?: string | null,
  /** Why it is asked. */
  reason: string,
  /** The rule that the scopes `session` and `always` make. */
  rule?: ApprovalRule | null,
  /** For how long it was approved. */
  scope?: ApprovalScope | null,
  /** Who answered, in that client's words. */
  answered_by?: string | null,
  /** What was said with a denial, or why the question was taken back. */
  message?: string | null, };

/** What is answered to a question whether a call may run. */
export type ApprovalAnswer = "approve" | "deny";

/** Parameters of `approval/answer`. */
export type ApprovalAnswerParams = {
  /** Which conversation. */
  conversation_id: ConversationId,
  /** Which session of it; `null` means the root. */
  session_id?: SessionId | null,
  /** The question's id as an item. */
  approval_id: ItemId,
  /** The answer. */
  answer: ApprovalAnswer,
  /** For how long an approval counts. */
  scope?: ApprovalScope,
  /** The hash of what was shown; if it is given and is not that of the call, nothing is answered. */
  hash?: string | null,
  /** What the model is told with a denial; at most 4,000 characters. */
  message?: string | null, };

/** Result of `approval/answer`: the answer is on disk. */
export type ApprovalAnswerResult = {
  /** The question with its answer. */
  approval: Approval, };

/** Parameters of `approval/list`. */
export type ApprovalListParams = {
  /** Only those of this conversation. */
  conversation_id?: ConversationId | null, };

/** Result of `approval/list`. */
export type ApprovalListResult = {
  /** The open questions, the oldest first. */
  approvals: Array<OpenApproval>, };

/** What is done with a tool call that no rule speaks of. */
export type ApprovalMode = "read_only" | "ask" | "auto_edit" | "full";

/** A rule about tool calls; it fits a call if all that it names fits. Deny beats ask, and ask beats allow.
 *
 * In all patterns `*` stands for any text, `?` for one character, and a backslash takes the next character as it is.
 */
export type ApprovalRule = {
  /** What is done. */
  decision: RuleDecision,
  /** A pattern of tools; `null` means any. */
  tool?: string | null,
  /** The executor; `null` means any. */
  executor?: ExecutorId | null,
  /** The work location that a call is made in, as it is, without patterns; `null` means any. */
  folder?: string | null,
  /** A pattern of the files that a call names; relative ones lie in the work location.
   *
   * `*` stays within a folder, `**` does not. A rule that allows fits only if all files of the call fit, any other if
   * one does.
   */
  path?: string | null,
  /** A pattern of a shell command with its words separated by single spaces; ` *` at the end also stands for nothing.
   *
   * A rule that allows fits only if all commands of the line either fit it or one like it, or only read; any other
   * if one command fits, wherever in the line it stands. Without wildcards it may also be a whole line.
   */
  command?: string | null, };

/** How long an approval counts. */
export type ApprovalScope = "once" | "session" | "always";

/** Whether and how an approval was answered. */
export type ApprovalState = "pending" | "approved" | "denied" | "expired" | "cancelled";

/** What the model said. */
export type AssistantMessage = {
  /** The text, as far as it came. */
  text: string,
  /** Whether it ends before the model had finished it. */
  cut?: boolean, };

/** Names one large text or attachment in a session's blob stream.
 *
 * Written as a lower-case hyphenated UUID; ids made later sort later.
 */
export type BlobId = string;

/** Where a large text or attachment lies in its session's blob stream. */
export type BlobRef = {
  /** Which blob: chunks of several may lie between each other. */
  id: BlobId,
  /** Sequence number of its first chunk. */
  first: number,
  /** Sequence number of its last chunk; 0 if it was still being written when this was noted. */
  last: number,
  /** Length of the whole in bytes; of what there was by then if it was still being written. Of a very long output the
   * middle is not kept.
   */
  bytes: number, };

/** What a summary was made for. */
export type CompactionTrigger = "share" | "overflow" | "manual" | "inherited";

/** Something that is wrong with a file of the configuration, or with a variable of the server's environment. */
export type ConfigFault = {
  /** The path of the file, or `environment: NAME`. */
  origin: string,
  /** The line, from 1; `null` for the whole. */
  line: number | null,
  /** The column, from 1. */
  column: number | null,
  /** The field as a path, such as `headers.X-Team`. */
  field: string | null,
  /** What is wrong and what would be right. */
  message: string, };

/** Parameters of `config/get`. */
export type ConfigGetParams = Record<symbol, never>;

/** Result of `config/get`. */
export type ConfigGetResult = {
  /** The main file, `openvaala.yaml`, on the server's machine. */
  path: string,
  /** What it says now, empty if there is none. It holds no keys: those are in the files of the providers. */
  text: string,
  /** Stands for that text; `config/set` takes it to see that nobody has changed it meanwhile. */
  revision: string,
  /** What is wrong on disk, in all files; empty if it could be put in force. */
  faults: Array<ConfigFault>,
  /** What is in force but not as it should be, in words. */
  warnings: Array<string>, };

/** Parameters of `config/set`. */
export type ConfigSetParams = {
  /** What the main file is to say. */
  text: string,
  /** The revision that was changed; with another one on disk nothing is written. `null` writes in any case. */
  revision?: string | null, };

/** Result of `config/set`: it is on disk and in force. */
export type ConfigSetResult = {
  /** The revision now. */
  revision: string,
  /** The model that new conversations ask now. */
  default_model: ModelRef,
  /** What counts only after a restart. */
  after_restart: Array<string>, };

/** Parameters of `config/validate`. */
export type ConfigValidateParams = {
  /** What the main file would say; `null` means what it says. */
  text?: string | null, };

/** Result of `config/validate`: nothing has changed. */
export type ConfigValidateResult = {
  /** The first fault of every broken file; empty if it could be put in force. */
  faults: Array<ConfigFault>,
  /** What would be in force but not as it should be, in words. */
  warnings: Array<string>, };

/** One piece of a message or of a tool result. */
export type Content = { "type": "text",
  /** The text, valid UTF-8. */
  text: string, } | { "type": "image",
  /** Its kind: `image/png`, `image/jpeg`, `image/gif` or `image/webp`. */
  media_type: string,
  /** Its bytes, or where they are. */
  data: ImageData, };

/** A summary that stands for all items before it when a request is built.
 *
 * Those items stay in the log. What must not depend on how well a model summarises is kept beside its text.
 */
export type ContextSummary = {
  /** The summary. */
  text: string,
  /** The `pos` of the last item that it stands for. */
  up_to: number,
  /** What the user said in the items that it stands for, word for word, oldest first: the newest always, older ones
   * as far as there is room.
   */
  messages?: Array<KeptMessage>,
  /** The agent's list of steps as it was. */
  plan?: Plan | null,
  /** The files that were changed, as the tools named them. */
  files?: Array<string>,
  /** The commands that ran when it was made: number and command line. */
  commands?: Array<string>,
  /** What it was made for. */
  trigger?: CompactionTrigger | null,
  /** What it should look at above all, in the words of whoever asked for it. */
  guidance?: string | null,
  /** The tokens of the last response before it, as far as the provider told. */
  tokens_before?: number | null, };

/** One task that somebody works on with agents. */
export type Conversation = {
  /** Its id; also the name of its directory. */
  id: ConversationId,
  /** A line that tells it from others: at first the beginning of its first message. */
  title: string | null,
  /** Whether any of its sessions runs a turn. */
  status: ConversationStatus,
  /** The session that its user talks to. */
  root_session: SessionId,
  /** Where its tools run. */
  executors: Array<WorkLocation>,
  /** When it was created. */
  created_at: Timestamp,
  /** When something was last said or done in it. */
  updated_at: Timestamp,
  /** What of it cannot be read and why, if its log is damaged; the rest is shown as it was last. */
  damaged?: string | null,
  /** Whether lists leave it out, unless they are asked for those that are archived. */
  archived?: boolean,
  /** Where it was forked from, if it was. */
  forked_from?: ForkOrigin | null, };

/** Parameters of `conversation/close`. */
export type ConversationCloseParams = {
  /** Which conversation. */
  conversation_id: ConversationId,
  /** Whether turns and commands that run in it are ended first; without it they are only waited for. */
  interrupt?: boolean,
  /** How long to wait while it is in use, in milliseconds: at most 60,000, default 1,000. */
  wait_ms?: number | null, };

/** Result of `conversation/close`: it is not in memory. */
export type ConversationCloseResult = {
  /** Whether it was in memory until now. */
  was_open: boolean, };

/** Parameters of `conversation/create`. */
export type ConversationCreateParams = {
  /** Where its tools run; empty means the local executor in the server's own working directory. */
  executors?: Array<WorkLocation>,
  /** The model to ask; `null` means that of its agent, or else the configured default. */
  model?: ModelRef | null,
  /** The name of the agent that works in it; `null` means the default one. */
  agent?: string | null,
  /** Which tool calls run without a question; `null` means as the configuration says. */
  approval_mode?: ApprovalMode | null,
  /** Its id, chosen by the client, a UUID best of version 7; `null` means one that nobody has.
   *
   * With it a request whose answer was lost can be sent again: if there is a conversation of that id, the answer is that one
   * as it is now, whatever else is asked for.
   */
  conversation_id?: ConversationId | null, };

/** Result of `conversation/create`. */
export type ConversationCreateResult = {
  /** The new conversation. */
  conversation: Conversation,
  /** Its root session. */
  session: Session, };

/** Parameters of `conversation/delete`. */
export type ConversationDeleteParams = {
  /** Which conversation. */
  conversation_id: ConversationId, };

/** Result of `conversation/delete`. */
export type ConversationDeleteResult = {
  /** Whether it lies in the trash; one without a message is gone at once, and nothing is left of it. */
  in_trash: boolean, };

/** Parameters of `conversation/deleted`. */
export type ConversationDeletedParams = {
  /** Which conversation; the subscription to it has ended. */
  conversation_id: ConversationId, };

/** Parameters of `conversation/entry`. */
export type ConversationEntryParams = {
  /** Which conversation. */
  conversation_id: ConversationId,
  /** What was written. */
  entry: Entry,
  /** Up to where this client has now seen the conversation. */
  cursor: ResumeCursor, };

/** Parameters of `conversation/fork`. */
export type ConversationForkParams = {
  /** The conversation to begin from; nothing of it changes. */
  conversation_id: ConversationId,
  /** Which session of it; `null` means the root. */
  session_id?: SessionId | null,
  /** The last item that the new conversation has; `null` means all that was said and done, but for a turn that runs.
   *
   * It must not lie between a tool call and its result, nor in a turn that runs.
   */
  item_id?: ItemId | null,
  /** The id of the new conversation, chosen by the client, a UUID best of version 7; `null` means one that nobody has.
   *
   * With it a request whose answer was lost can be sent again: if there is a conversation of that id, the answer is that one
   * as it is now, whatever else is asked for.
   */
  new_id?: ConversationId | null, };

/** Result of `conversation/fork`: the new conversation is on disk as a whole. */
export type ConversationForkResult = {
  /** The new conversation. */
  conversation: Conversation,
  /** Its root session. */
  session: Session, };

/** Parameters of `conversation/gap`. */
export type ConversationGapParams = {
  /** Which conversation; the subscription to it has ended. */
  conversation_id: ConversationId,
  /** Why. */
  reason: string, };

/** Parameters of `conversation/get`. */
export type ConversationGetParams = {
  /** Which conversation. */
  conversation_id: ConversationId, };

/** Result of `conversation/get`. */
export type ConversationGetResult = {
  /** The conversation. */
  conversation: Conversation,
  /** Its sessions, the root first. */
  sessions: Array<Session>,
  /** Its turns, oldest first. */
  turns: Array<Turn>, };

/** Names one conversation.
 *
 * Written as a lower-case hyphenated UUID; ids made later sort later.
 */
export type ConversationId = string;

/** Parameters of `conversation/list`.
 *
 * A conversation must pass all filters that are given; they must stay the same from page to page.
 */
export type ConversationListParams = {
  /** Where the last page ended; `null` begins with the last used. */
  cursor?: string | null,
  /** How many to give: 1 to 1,000, default 50. */
  limit?: number | null,
  /** Only conversations with this status. */
  status?: ConversationStatus | null,
  /** Only conversations that work in this directory itself, on any executor; written as their `executors` have it. */
  root?: string | null,
  /** Only conversations whose title has this text, in any mixture of upper and lower case. */
  search?: string | null,
  /** Only conversations in which something was said or done at this time or later. */
  updated_since?: Timestamp | null,
  /** Only conversations that are archived; without it, only those that are not. */
  archived?: boolean, };

/** Result of `conversation/list`. */
export type ConversationListResult = {
  /** The conversations, the last used first. */
  conversations: Array<Conversation>,
  /** Where the next page begins; `null` at the end. */
  next: string | null,
  /** Whether newer changes may be missing, because the index is still being brought up to date. */
  stale?: boolean, };

/** Parameters of `conversation/live`. */
export type ConversationLiveParams = {
  /** Which conversation. */
  conversation_id: ConversationId,
  /** What shows. */
  live: Live, };

/** Parameters of `conversation/open`. */
export type ConversationOpenParams = {
  /** Which conversation. */
  conversation_id: ConversationId, };

/** Result of `conversation/open`. */
export type ConversationOpenResult = {
  /** The conversation. */
  conversation: Conversation,
  /** Its sessions, the root first. */
  sessions: Array<Session>,
  /** What of its states cannot be read and why, a line each and at most 100; the rest is as it was last. */
  damaged: Array<string>, };

/** Parameters of `conversation/restore`. */
export type ConversationRestoreParams = {
  /** Which conversation of the trash. */
  conversation_id: ConversationId, };

/** Result of `conversation/restore`. */
export type ConversationRestoreResult = Record<symbol, never>;

/** Whether a conversation is at work. */
export type ConversationStatus = "idle" | "running";

/** Parameters of `conversation/subscribe`. */
export type ConversationSubscribeParams = {
  /** Which conversation. */
  conversation_id: ConversationId,
  /** The last cursor that this client has seen of it. */
  cursor?: ResumeCursor | null, };

/** Result of `conversation/subscribe`. */
export type ConversationSubscribeResult = {
  /** What there is, for a client that begins or has missed too much. */
  snapshot: Snapshot | null,
  /** Exactly what came after the given cursor, for one that comes back. */
  entries: Array<Entry>,
  /** What is still growing, by `pos`: the texts so far. */
  partials: Array<PartialItem>,
  /** Up to where `snapshot` or `entries` go. */
  cursor: ResumeCursor, };

/** Parameters of `conversation/unsubscribe`. */
export type ConversationUnsubscribeParams = {
  /** Which conversation. */
  conversation_id: ConversationId, };

/** Result of `conversation/unsubscribe`. */
export type ConversationUnsubscribeResult = {
  /** Whether there was a subscription. */
  was_subscribed: boolean, };

/** Parameters of `conversation/update`; what is left out stays. */
export type ConversationUpdateParams = {
  /** Which conversation. */
  conversation_id: ConversationId,
  /** Its title from now on: one line of at most 200 characters. */
  title?: string | null,
  /** Whether `conversation/list` leaves it out, unless it is asked for those that are archived. */
  archived?: boolean | null,
  /** Where its tools run from the next turn on; an empty list means nowhere. */
  executors?: Array<WorkLocation> | null, };

/** Result of `conversation/update`: the change is on disk. */
export type ConversationUpdateResult = {
  /** The conversation as it is now. */
  conversation: Conversation, };

/** More text of an item that has begun. */
export type Delta = {
  /** The session that it belongs to. */
  session_id: SessionId,
  /** The item. */
  item_id: ItemId,
  /** Where the text goes: bytes of UTF-8 before it. Behind the end of what came before, some was left out: the output
   * of a tool can come faster than it is shown.
   */
  offset: number,
  /** The text. */
  text: string, };

/** Something that has been flushed to the log.
 *
 * `seq` is the number in the stream that it lies in: the conversation's metadata, or the session's items.
 */
export type Entry = { "conversation": {
    /** Number in the metadata stream. */
    seq: number,
    /** The state. */
    conversation: Conversation, } } | { "session": {
    /** Number in the metadata stream. */
    seq: number,
    /** The state. */
    session: Session, } } | { "turn": {
    /** Number in the metadata stream. */
    seq: number,
    /** The state. */
    turn: Turn, } } | { "item": {
    /** Number in the session's item stream. */
    seq: number,
    /** The session that it belongs to. */
    session_id: SessionId,
    /** The item. */
    item: Item, } } | { "damaged": {
    /** Number in the session's item stream. */
    seq: number,
    /** The session whose log it is. */
    session_id: SessionId,
    /** What is wrong with it, and where. */
    message: string, } };

/** A place where tools run. */
export type Executor = {
  /** What conversations name it by. */
  id: ExecutorId,
  /** What kind of environment it is, such as `local`. */
  kind: string, };

/** Parameters of `executor/browse`. */
export type ExecutorBrowseParams = {
  /** Which executor. */
  executor: ExecutorId,
  /** The folder to look into, absolute; `null` means the server's working directory. */
  path?: string | null,
  /** How many to give: 1 to 1,000, default 1,000. */
  limit?: number | null, };

/** Result of `executor/browse`. */
export type ExecutorBrowseResult = {
  /** The folder as the executor names it. */
  path: string,
  /** The folder that it lies in; `null` for the uppermost. */
  parent: string | null,
  /** The folders in it by name, links to folders included. */
  folders: Array<Folder>,
  /** Whether there are more. */
  more: boolean, };

/** The conversation goes on with other executors or folders. */
export type ExecutorChange = {
  /** The work locations until now. */
  from: Array<WorkLocation>,
  /** The work locations from now on. */
  to: Array<WorkLocation>, };

/** Parameters of `executor/complete`. */
export type ExecutorCompleteParams = {
  /** Which executor. */
  executor: ExecutorId,
  /** What was typed so far, absolute; what follows its last `/` is the beginning of a name. */
  path: string,
  /** Whether files are completed besides folders. */
  files?: boolean,
  /** How many to give: 1 to 1,000, default 100. */
  limit?: number | null, };

/** Result of `executor/complete`. */
export type ExecutorCompleteResult = {
  /** The paths that begin so, by name; those of folders end with `/`. Names with a dot before them come only once that is typed. */
  paths: Array<string>,
  /** Whether there are more. */
  more: boolean, };

/** Names an executor, such as `local` or `build-host`.
 *
 * One to 64 of `a-z A-Z 0-9 _ -`, since models see it as a value of a tool parameter.
 */
export type ExecutorId = string;

/** Parameters of `executor/list`. */
export type ExecutorListParams = Record<symbol, never>;

/** Result of `executor/list`. */
export type ExecutorListResult = {
  /** The executors by id. */
  executors: Array<Executor>, };

/** Parameters of `executor/test`. */
export type ExecutorTestParams = {
  /** Which executor. */
  executor: ExecutorId,
  /** The folder to open there, absolute; `null` means the server's working directory. */
  root?: string | null, };

/** Result of `executor/test`. */
export type ExecutorTestResult = {
  /** Whether the folder can be worked in. */
  ok: boolean,
  /** What environment it is, or what went wrong. */
  message: string,
  /** How long it took, in milliseconds. */
  millis: number, };

/** Something that is not as it should be. */
export type Finding = {
  /** What kind of thing it is. */
  kind: FindingKind,
  /** The stream or directory, from the data directory on. */
  place: string,
  /** The number of the entry. */
  seq: number | null,
  /** Where it begins, in bytes from the start of the stream. */
  offset: number | null,
  /** How many bytes it has. */
  length: number | null,
  /** What is wrong with it. */
  message: string,
  /** What a repair does about it, or what the user can do. */
  remedy: string,
  /** Whether it was put right. */
  repaired: boolean, };

/** What kind of thing a check has found. */
export type FindingKind = "damaged_entry" | "torn_tail" | "unreadable" | "half_copy" | "interrupted_deletion" | "interrupted_restoration" | "wrong_name" | "newer_format" | "stale_index";

/** A folder that somebody may choose. */
export type Folder = {
  /** Its name in the folder above. */
  name: string,
  /** Where it is, absolute. */
  path: string,
  /** Whether its name begins with a dot. */
  hidden: boolean, };

/** The place in another conversation that one was forked from. */
export type ForkOrigin = {
  /** The other conversation; it may be gone by now. */
  conversation_id: ConversationId,
  /** The session there. */
  session_id: SessionId,
  /** The last item that both have. */
  item_id: ItemId, };

/** A hook that ran around a tool call. */
export type HookRun = {
  /** The hook's name. */
  hook: string,
  /** The event that it ran for. */
  event: string,
  /** The item that it ran around. */
  around?: ItemId | null,
  /** Its exit code, if it ended by itself. */
  exit_code?: number | null,
  /** What it said. */
  output: string, };

/** The bytes of an image. */
export type ImageData = { "base64": string } | { "blob": BlobRef };

/** Parameters of `initialize`. */
export type InitializeParams = {
  /** The version that the client speaks; must be the server's own. */
  protocol_version: string,
  /** Who the client is. */
  client: Peer, };

/** Result of `initialize`. */
export type InitializeResult = {
  /** The version that both sides speak. */
  protocol_version: string,
  /** Who the server is. */
  server: Peer,
  /** The model that new conversations ask. */
  default_model: ModelRef,
  /** Set while no real model is configured: what answers, and how to add one. */
  notice: string | null, };

/** An AGENTS.md that was brought into the context. */
export type Instructions = {
  /** The file that it comes from. */
  path: string,
  /** Its text as the model reads it. */
  text: string,
  /** The size of the whole file in bytes; larger than the text if that was cut. */
  bytes: number, };

/** How far an interrupt reaches. */
export type InterruptScope = "turn" | "tree";

/** The turn was ended before its time. */
export type Interruption = {
  /** Who or what ended it. */
  cause: InterruptionCause, };

/** Who or what ended a turn before its time. */
export type InterruptionCause = "requested" | "shutdown" | "crash" | "step_limit" | "repeat_limit";

/** An item as it stands in JSON. */
export type Item = {
  /** The item's own id. */
  id: ItemId,
  /** What the body is. */
  kind: ItemKind,
  /** The turn that it belongs to, if it belongs to one. */
  turn: TurnId | null,
  /** Its place in the session: counted from 1 in order of first appearance. */
  pos: number,
  /** When it first appeared. */
  started_at: Timestamp,
  /** When it was final or cut. */
  ended_at: Timestamp,
  /** The body, shaped by `kind`. */
  body: unknown, };

/** Names one item; clients choose the id of the input that they send.
 *
 * Written as a lower-case hyphenated UUID; ids made later sort later.
 */
export type ItemId = string;

/** What an item is. */
export type ItemKind = string;

/** In which direction to read a session's log. */
export type ItemsOrder = "descending" | "ascending";

/** What the user said, kept word for word in a summary. */
export type KeptMessage = {
  /** The item that has it. */
  item: ItemId,
  /** Text and, of the newest message, images. */
  content: Array<Content>, };

/** Something that is shown at once and kept nowhere; the item that follows has all of it. */
export type Live = { "started": PartialItem } | { "delta": Delta } | { "dropped": {
    /** The session that it belonged to. */
    session_id: SessionId,
    /** The item. */
    item_id: ItemId, } } | { "degraded": {
    /** The session. */
    session_id: SessionId,
    /** What the storage said. */
    message: string, } };

/** A line of a server's log. */
export type LogLine = {
  /** Its number, from 1 at the start of the server. Where numbers are left out lines are not kept any more. */
  number: number,
  /** What it says. */
  text: string, };

/** A model that the configuration names. */
export type Model = {
  /** The provider's name. */
  provider: string,
  /** The model's name there. */
  model: string,
  /** Whether it is the one that the provider is asked for by default. */
  is_provider_default: boolean,
  /** How many tokens it can read, if that is known. */
  context_window?: number | null, };

/** The session goes on with another model or effort. */
export type ModelChange = {
  /** The model until now. */
  from: ModelRef,
  /** The model from now on. */
  to: ModelRef, };

/** Parameters of `model/default/set`. */
export type ModelDefaultSetParams = {
  /** The model, at a provider that there is. */
  model: ModelRef, };

/** Result of `model/default/set`: it is on disk and in force. */
export type ModelDefaultSetResult = {
  /** The model that new conversations ask now. */
  default_model: ModelRef, };

/** A model request that failed for good. */
export type ModelError = {
  /** The model that was asked. */
  model: ModelRef,
  /** What went wrong and what to do about it. */
  message: string,
  /** The HTTP status, where there was one. */
  status?: number | null,
  /** How many times it was tried. */
  attempts: number, };

/** Parameters of `model/list`. */
export type ModelListParams = {
  /** Only those of this provider; `null` means of all. */
  provider?: string | null, };

/** Result of `model/list`. */
export type ModelListResult = {
  /** The models that the configuration names, by provider and name; a provider may have others. */
  models: Array<Model>,
  /** The model that new conversations ask. */
  default_model: ModelRef, };

/** A model as a session names it. */
export type ModelRef = {
  /** The provider's name in the configuration. */
  provider: string,
  /** The model's name at that provider. */
  model: string,
  /** How hard it shall think, in the provider's words; `null` leaves it to the provider. */
  effort?: string | null, };

/** A provider's own data, which goes back to the place where it came from and nowhere else. */
export type Opaque = {
  /** The provider's name in the configuration. */
  provider: string,
  /** The model that made it. */
  model: string,
  /** The account at the provider, as far as it is known: a hash of the key, never the key. */
  account?: string | null,
  /** The data as it came. */
  data: unknown, };

/** An open question whether a tool call may run. */
export type OpenApproval = {
  /** In which conversation. */
  conversation_id: ConversationId,
  /** In which session of it. */
  session_id: SessionId,
  /** Its id as an item. */
  approval_id: ItemId,
  /** Since when it waits. */
  asked_at: Timestamp,
  /** What is asked. */
  approval: Approval, };

/** An item that is still growing. */
export type PartialItem = {
  /** The session that it belongs to. */
  session_id: SessionId,
  /** The turn that it belongs to. */
  turn_id: TurnId,
  /** The id that the finished item will have. */
  item_id: ItemId,
  /** What it will be. */
  kind: ItemKind,
  /** Its place in the session. */
  pos: number,
  /** When it first appeared. */
  started_at: Timestamp,
  /** For a tool call the tool's name, for a tool result the call's id. */
  label?: string | null,
  /** Bytes of UTF-8 that came before `text` and are not kept (only the end of long output is). */
  offset: number,
  /** Its text so far: message text, reasoning, arguments, or output. */
  text: string, };

/** A program at one end of a connection. */
export type Peer = {
  /** Its name, such as `openvaala-cli`. */
  name: string,
  /** Its own version. */
  version: string, };

/** An input that waits for its turn. */
export type PendingInput = {
  /** The id that it will have as an item. */
  item_id: ItemId,
  /** The beginning of its text, at most 200 characters. */
  preview: string,
  /** How many images it carries. */
  image_count: number,
  /** Whether it waits for the running turn, not for the next. */
  is_steer: boolean,
  /** The session whose agent has sent it; `null` if a client has. */
  from?: SessionId, };

/** The agent's list of steps. */
export type Plan = {
  /** The steps, in order. */
  steps: Array<PlanStep>, };

/** One step of a plan. */
export type PlanStep = {
  /** What is to be done. */
  text: string,
  /** How far it is. */
  state: PlanStepState, };

/** How far a step of a plan is. */
export type PlanStepState = "pending" | "running" | "done";

/** A configured model provider. */
export type Provider = {
  /** Its name. */
  name: string,
  /** What it speaks: `openai_chat`, `openai_responses`, `anthropic_messages`, or `demo`. */
  type: string,
  /** Where it is asked; `null` for one that is not asked over the network. */
  base_url: string | null,
  /** The model it is asked for by default. */
  default_model: string,
  /** Where it comes from: a file of the configuration, a variable of the environment, or built in. */
  origin: string, };

/** Parameters of `provider/add`. */
export type ProviderAddParams = {
  /** Its name; also that of its file. */
  name: string,
  /** What it speaks: `openai_chat`, `openai_responses` or `anthropic_messages`. */
  type: string,
  /** Where its API begins. */
  base_url: string,
  /** Its key; written to its file, which only the owner can read, and never given out again. */
  api_key?: string | null,
  /** The variable of the server's environment that has its key, in the place of `api_key`. */
  api_key_env?: string | null,
  /** The model it is asked for by default. */
  default_model: string,
  /** Whether new conversations ask it; the first provider of a configuration is the default in any case. */
  make_default?: boolean, };

/** Result of `provider/add`: it is on disk and in force. */
export type ProviderAddResult = {
  /** The model that new conversations ask now. */
  default_model: ModelRef, };

/** Parameters of `provider/edit`; what is left out stays as it is. */
export type ProviderEditParams = {
  /** The provider's name. */
  name: string,
  /** What it speaks: `openai_chat`, `openai_responses` or `anthropic_messages`. */
  type?: string | null,
  /** Where its API begins. */
  base_url?: string | null,
  /** Its key; written to its file, which only the owner can read, and never given out again. */
  api_key?: string | null,
  /** The variable of the server's environment that has its key, in the place of a key that was written. */
  api_key_env?: string | null,
  /** The model it is asked for by default. */
  default_model?: string | null, };

/** Result of `provider/edit`: it is on disk and in force. */
export type ProviderEditResult = {
  /** The model that new conversations ask now. */
  default_model: ModelRef, };

/** Parameters of `provider/list`. */
export type ProviderListParams = Record<symbol, never>;

/** Result of `provider/list`. */
export type ProviderListResult = {
  /** The providers, by name. */
  providers: Array<Provider>,
  /** The model that new conversations ask. */
  default_model: ModelRef, };

/** Parameters of `provider/remove`. */
export type ProviderRemoveParams = {
  /** The provider's name. */
  name: string, };

/** Result of `provider/remove`: its file is gone. */
export type ProviderRemoveResult = {
  /** The model that new conversations ask now. */
  default_model: ModelRef, };

/** Parameters of `provider/test`. */
export type ProviderTestParams = {
  /** The provider's name. */
  name: string,
  /** The model to ask; `null` means its default. */
  model?: string | null, };

/** Result of `provider/test`. */
export type ProviderTestResult = {
  /** Whether it answered. */
  ok: boolean,
  /** What it answered, or what went wrong and what to do about it. */
  message: string,
  /** How long it took, in milliseconds. */
  millis: number, };

/** What the model thought, as far as its provider shows it. */
export type Reasoning = {
  /** The text or summary; empty if the provider shows none. */
  text: string,
  /** What the provider wants to see again, unread. */
  opaque?: Opaque | null,
  /** Whether it ends before the model had finished it. */
  cut?: boolean, };

/** Where a server listens for other machines. */
export type RemoteAddress = {
  /** The address. */
  address: string,
  /** Whether what is said there is encrypted (`wss://`). */
  encrypted: boolean, };

/** Says up to where a client has seen a conversation.
 *
 * Opaque to clients: made of the log's own sequence numbers, valid over restarts of the server.
 */
export type ResumeCursor = string;

/** A model request failed and is tried again. */
export type RetryNotice = {
  /** What went wrong. */
  message: string,
  /** Which attempt failed, counted from 1. */
  attempt: number,
  /** When the next one starts. */
  next_at: Timestamp, };

/** One thing that a token may allow. None of them brings another one. */
export type Right = "watch" | "send" | "approve" | "admin";

/** What a token allows: a list of rights without an order. */
export type Rights = Array<Right>;

/** An error as it stands in a JSON-RPC response. */
export type RpcError = {
  /** What kind of error it is: a number of the table of errors. */
  code: number,
  /** What happened, where, and what to do about it. */
  message: string,
  /** More about it, for programs. */
  data?: unknown, };

/** What a rule does with the calls that it fits. */
export type RuleDecision = "allow" | "ask" | "deny";

/** What to do with an input if a turn runs. */
export type SendMode = "queue" | "steer" | "idle_only";

/** Parameters of `server/check`. */
export type ServerCheckParams = {
  /** Only this conversation, also in the trash; `null` means all. */
  conversation_id?: ConversationId | null,
  /** Whether to put right what can be put right without losing a byte. */
  repair?: boolean, };

/** Result of `server/check`: what was read, and what was found. */
export type ServerCheckResult = {
  /** How many conversations were read, those in the trash with them. */
  conversations: number,
  /** How many streams they have. */
  streams: number,
  /** How many entries these have, damaged ones with them. */
  entries: number,
  /** What is not as it should be; empty when all is sound. */
  findings: Array<Finding>, };

/** Parameters of `server/logs`. */
export type ServerLogsParams = {
  /** Only lines after that number, the oldest first; `null` means the last ones. */
  after?: number | null,
  /** How many to give: 1 to 1,000, default 100. */
  limit?: number | null,
  /** How long to wait for a line if there is none yet, at most 30,000 ms. Default: not at all. */
  wait_ms?: number | null, };

/** Result of `server/logs`. */
export type ServerLogsResult = {
  /** The lines, the oldest first. */
  lines: Array<LogLine>,
  /** What to give as `after` to go on. */
  next: number, };

/** Parameters of `server/progress`. */
export type ServerProgressParams = {
  /** The method whose work this is. */
  method: string,
  /** How many things are done. */
  done: number,
  /** How many there are. */
  total: number, };

/** Parameters of `server/reindex`. */
export type ServerReindexParams = Record<symbol, never>;

/** Result of `server/reindex`. */
export type ServerReindexResult = {
  /** How many conversations are in the index now. */
  conversations: number,
  /** What could not be read, a line each; it stays on disk untouched. */
  damaged: Array<string>, };

/** Parameters of `server/reload`. */
export type ServerReloadParams = Record<symbol, never>;

/** Result of `server/reload`. */
export type ServerReloadResult = {
  /** The model that new conversations ask from now on. */
  default_model: ModelRef,
  /** What the configuration says that will only count after a restart, such as another address. */
  after_restart: Array<string>, };

/** Parameters of `server/shutdown`. */
export type ServerShutdownParams = {
  /** How long to wait until no turn runs, at most an hour; what runs then is interrupted. Default: not at all. */
  wait_seconds?: number, };

/** Result of `server/shutdown`: the server has begun to stop. */
export type ServerShutdownResult = {
  /** The process that is about to end. */
  pid: number, };

/** Parameters of `server/status`. */
export type ServerStatusParams = Record<symbol, never>;

/** Result of `server/status`. */
export type ServerStatusResult = {
  /** The server's own version. */
  version: string,
  /** Its process id. */
  pid: number,
  /** The address that it listens on for clients of its machine. */
  address: string,
  /** Where clients of other machines reach it; `null` if they do not. */
  remote: RemoteAddress | null,
  /** Its data directory, canonical. */
  data_dir: string,
  /** When it started. */
  started_at: Timestamp,
  /** How many conversations are open in memory. */
  open_conversations: number,
  /** How many turns run. */
  running_turns: number,
  /** How many commands of agents run. */
  running_commands: number,
  /** How many clients are connected. */
  clients: number,
  /** Resident memory in bytes, where the system tells. */
  memory_bytes: number | null,
  /** The model that new conversations ask. */
  default_model: ModelRef,
  /** What does not work as it should, in words; empty when all is well. */
  degraded: Array<string>, };

/** Parameters of `server/stopping`. */
export type ServerStoppingParams = {
  /** Why it stops. */
  reason: string, };

/** One agent's line of work in a conversation. */
export type Session = {
  /** Its id; also the name of its log. */
  id: SessionId,
  /** The conversation that it belongs to. */
  conversation_id: ConversationId,
  /** The session that started it; `null` for the root. */
  parent: SessionId | null,
  /** Where its agent stands among those of the conversation: `main`, `main/review`, `main/review/tests`. */
  path?: string,
  /** Whether its agent was closed: it takes no more input. */
  closed?: boolean,
  /** The agent that works in it; `null` for the default one. */
  agent?: string | null,
  /** The model that its next turn asks. */
  model: ModelRef,
  /** Which tool calls of its next turn run without a question; `null` means as the runtime is configured. */
  approval_mode?: ApprovalMode | null,
  /** Whether it runs a turn. */
  status: SessionStatus,
  /** The turn that runs now. */
  active_turn: TurnId | null,
  /** Inputs that wait, in the order in which they will be taken. */
  pending: Array<PendingInput>,
  /** Whether waiting inputs stay until the next send, because the last turn was interrupted or failed. */
  held: boolean,
  /** Tokens used by all its turns. */
  usage: Usage,
  /** When it was created. */
  created_at: Timestamp,
  /** When it last changed. */
  updated_at: Timestamp, };

/** Parameters of `session/blob`. */
export type SessionBlobParams = {
  /** Which conversation. */
  conversation_id: ConversationId,
  /** Which session of it; `null` means the root. */
  session_id?: SessionId | null,
  /** The reference as the item has it. */
  blob: BlobRef,
  /** The first byte to give; rounded down to the chunk that has it. */
  offset?: number, };

/** Result of `session/blob`: at most 1 MiB of it. */
export type SessionBlobResult = {
  /** The first byte that `data` has. */
  offset: number,
  /** The bytes, in standard base64 with padding. */
  data: string,
  /** Where to go on; `null` at the end. */
  next: number | null, };

/** Parameters of `session/compact`. */
export type SessionCompactParams = {
  /** Which conversation. */
  conversation_id: ConversationId,
  /** Which session of it; `null` means the root. */
  session_id?: SessionId | null,
  /** What the summary should look at above all; at most 16,000 bytes. */
  guidance?: string | null,
  /** Only show what the summary would be. */
  preview?: boolean, };

/** Result of `session/compact`. */
export type SessionCompactResult = {
  /** The item of the summary; `null` for a preview. */
  item_id: ItemId | null,
  /** The summary. */
  summary: ContextSummary, };

/** Names one session of a conversation.
 *
 * Written as a lower-case hyphenated UUID; ids made later sort later.
 */
export type SessionId = string;

/** Parameters of `session/interrupt`. */
export type SessionInterruptParams = {
  /** Which conversation. */
  conversation_id: ConversationId,
  /** Which session of it; `null` means the root. */
  session_id?: SessionId | null,
  /** How far the interrupt reaches. */
  scope?: InterruptScope, };

/** Result of `session/interrupt`. */
export type SessionInterruptResult = {
  /** The turn that was interrupted; `null` if none ran. */
  turn_id: TurnId | null, };

/** Parameters of `session/items`. */
export type SessionItemsParams = {
  /** Which conversation. */
  conversation_id: ConversationId,
  /** Which session of it; `null` means the root. */
  session_id?: SessionId | null,
  /** In which direction to read. */
  order?: ItemsOrder,
  /** Read strictly after this number in that direction; 0 begins at that end. */
  cursor?: number,
  /** How many to give: 1 to 1,000, default 100. */
  limit?: number | null, };

/** Result of `session/items`. */
export type SessionItemsResult = {
  /** Items (and damaged lines) in the order that was asked for; show them by `pos`. */
  items: Array<Entry>,
  /** The cursor of the next page; `null` at the end. */
  next: number | null, };

/** Result of `session/pending/update`, `withdraw` and `reorder`: the change is on disk. */
export type SessionPendingChangeResult = {
  /** The inputs that waited once it was made, in the order in which they will be taken. */
  pending: Array<PendingInput>, };

/** Parameters of `session/pending/list`. */
export type SessionPendingListParams = {
  /** Which conversation. */
  conversation_id: ConversationId,
  /** Which session of it; `null` means the root. */
  session_id?: SessionId | null, };

/** Result of `session/pending/list`. */
export type SessionPendingListResult = {
  /** The inputs that wait, in the order in which they will be taken. */
  inputs: Array<WholePendingInput>,
  /** Whether they stay until the next `session/send` or `session/resume`. */
  held: boolean, };

/** Parameters of `session/pending/reorder`. */
export type SessionPendingReorderParams = {
  /** Which conversation. */
  conversation_id: ConversationId,
  /** Which session of it; `null` means the root. */
  session_id?: SessionId | null,
  /** All inputs that wait, in the order in which they shall be taken. */
  item_ids: Array<ItemId>, };

/** Parameters of `session/pending/update`; what is left out stays. */
export type SessionPendingUpdateParams = {
  /** Which conversation. */
  conversation_id: ConversationId,
  /** Which session of it; `null` means the root. */
  session_id?: SessionId | null,
  /** Which input. */
  item_id: ItemId,
  /** What it says instead; at least one piece. An image carries its bytes as base64. */
  content?: Array<Content> | null,
  /** `true`: the running turn reads it before its next model request; `false`: it waits for that turn's end.
   *
   * With no turn running there is nothing to steer: it goes on waiting, and the result says so.
   */
  steer?: boolean | null, };

/** Parameters of `session/pending/withdraw`. */
export type SessionPendingWithdrawParams = {
  /** Which conversation. */
  conversation_id: ConversationId,
  /** Which session of it; `null` means the root. */
  session_id?: SessionId | null,
  /** Which inputs; if one of them does not wait, none is withdrawn. */
  item_ids: Array<ItemId>, };

/** Parameters of `session/resume`. */
export type SessionResumeParams = {
  /** Which conversation. */
  conversation_id: ConversationId,
  /** Which session of it; `null` means the root. */
  session_id?: SessionId | null, };

/** Result of `session/resume`: that the inputs go on is on disk. */
export type SessionResumeResult = {
  /** Whether inputs were held that are not any more. */
  resumed: boolean, };

/** Parameters of `session/send`. */
export type SessionSendParams = {
  /** Which conversation. */
  conversation_id: ConversationId,
  /** Which session of it; `null` means the root. */
  session_id?: SessionId | null,
  /** The id that the input will have as an item, made by the client. */
  item_id: ItemId,
  /** Text and images; at least one piece. */
  content: Array<Content>,
  /** What to do if a turn runs. */
  mode?: SendMode,
  /** A JSON Schema that the final answer of the turn shall follow; a JSON object.
   *
   * It counts for the turn that this input starts; an input that a running turn reads does not change that turn's.
   */
  output_schema?: Record<string, unknown> | null,
  /** Which tool calls of this session run without a question from its next turn on; `null` leaves it as it is. */
  approval_mode?: ApprovalMode | null, };

/** Result of `session/send`: the input is on disk. */
export type SessionSendResult = {
  /** The session that took it. */
  session_id: SessionId,
  /** Whether it had been taken before, so that this request changed nothing. */
  duplicate: boolean, };

/** One session within a snapshot. */
export type SessionSnapshot = {
  /** The session. */
  session: Session,
  /** Its running turn or, if none runs, its last one. */
  turn: Turn | null,
  /** The last entries of its log, oldest first. */
  items: Array<Entry>,
  /** Where `session/items` goes on backwards; `null` if `items` has all. */
  before: number | null,
  /** The questions whether a tool call may run that nobody has answered, the oldest first: items of its log, which may lie
   * before `items`.
   */
  questions: Array<Item>, };

/** Whether a session is at work. */
export type SessionStatus = "idle" | "running" | "degraded";

/** Parameters of `session/tree`. */
export type SessionTreeParams = {
  /** Which conversation. */
  conversation_id: ConversationId, };

/** Result of `session/tree`. */
export type SessionTreeResult = {
  /** The sessions: the root first, and each before those that its agent has started, in the order of their start. */
  sessions: Array<Session>, };

/** Parameters of `session/uncompact`. */
export type SessionUncompactParams = {
  /** Which conversation. */
  conversation_id: ConversationId,
  /** Which session of it; `null` means the root. */
  session_id?: SessionId | null, };

/** Result of `session/uncompact`. */
export type SessionUncompactResult = {
  /** The item of the summary that counts no longer. */
  summary: ItemId, };

/** Parameters of `session/update`; what is left out stays.
 *
 * It counts from the next turn on: one that runs ends with what it began with.
 */
export type SessionUpdateParams = {
  /** Which conversation. */
  conversation_id: ConversationId,
  /** Which session of it; `null` means the root. */
  session_id?: SessionId | null,
  /** The model that it asks; without an `effort` that is left to the provider. */
  model?: ModelRef | null,
  /** How hard the model shall think, in the provider's words; the empty text leaves it to the provider. */
  effort?: string | null,
  /** The name of the agent that works in it; the empty text means the default one. It keeps the session's model. */
  agent?: string | null, };

/** Result of `session/update`: the change is on disk. */
export type SessionUpdateResult = {
  /** The session as it is now. */
  session: Session, };

/** The tokens of a session. */
export type SessionUsage = {
  /** Which session. */
  session_id: SessionId,
  /** The tokens that its turns have used. */
  usage: Usage, };

/** A skill that was brought into the context. */
export type Skill = {
  /** The skill's name. */
  name: string,
  /** Its text as the model reads it. */
  text: string, };

/** All that a client needs to show a conversation from here on. */
export type Snapshot = {
  /** The conversation. */
  conversation: Conversation,
  /** Its sessions, the root first. */
  sessions: Array<SessionSnapshot>, };

/** A summary counts no longer: requests are made from the items that it stood for again. */
export type SummaryUndone = {
  /** The item of the summary. */
  summary: ItemId, };

/** A command in the background of a session. */
export type Terminal = {
  /** The session whose agent has started it. */
  session_id: SessionId,
  /** Its number in that session, from 1. */
  terminal_id: number,
  /** The beginning of its command line, at most 4,000 characters. */
  command: string,
  /** Whether it runs. */
  status: TerminalStatus,
  /** How its shell exited, if it has and no signal ended it. */
  exit_code?: number | null,
  /** The number of the signal that ended its shell, if one has. */
  signal?: number | null,
  /** Who ended it, or why nobody knows how it ended; `null` for one that runs or has ended by itself. */
  why?: string | null,
  /** When it was started. */
  started_at: Timestamp,
  /** When it ended. */
  ended_at?: Timestamp | null,
  /** How many bytes it has written. */
  bytes: number,
  /** How many bytes were written to its input. */
  input_bytes: number, };

/** Parameters of `terminal/kill`. */
export type TerminalKillParams = {
  /** Which conversation. */
  conversation_id: ConversationId,
  /** Which session of it; `null` means the root. */
  session_id?: SessionId | null,
  /** The number of the terminal in that session. */
  terminal_id: number,
  /** What it is sent. */
  signal?: TerminalSignal, };

/** Result of `terminal/kill`. */
export type TerminalKillResult = {
  /** The terminal as it is now; it runs on only if the system does not let it go within 2 s. */
  terminal: Terminal, };

/** Parameters of `terminal/list`. */
export type TerminalListParams = {
  /** Which conversation. */
  conversation_id: ConversationId,
  /** Only those of this session; `null` means of all. */
  session_id?: SessionId | null, };

/** Result of `terminal/list`. */
export type TerminalListResult = {
  /** Those that run and, of each session, the last 50 commands that have ended; the root session first. */
  terminals: Array<Terminal>, };

/** Parameters of `terminal/read`. */
export type TerminalReadParams = {
  /** Which conversation. */
  conversation_id: ConversationId,
  /** Which session of it; `null` means the root. */
  session_id?: SessionId | null,
  /** The number of the terminal in that session. */
  terminal_id: number,
  /** The first byte of its output to give, from 0. */
  offset?: number,
  /** How many bytes to give from there on: at most 1,048,576, default 65,536. */
  head?: number | null,
  /** How many bytes of its end to give besides, if the head does not reach it: at most 1,048,576, default 0. */
  tail?: number | null, };

/** Result of `terminal/read`: what the command wrote as it wrote it, escape sequences and all.
 *
 * What is no UTF-8 shows as U+FFFD; a character is never cut.
 */
export type TerminalReadResult = {
  /** The terminal as it is now. */
  terminal: Terminal,
  /** Where `text` begins; behind what was asked for where bytes are not kept. */
  offset: number,
  /** What was written from there on; empty if there is nothing by now. */
  text: string,
  /** Where to go on reading. */
  next: number,
  /** Its end, if that was asked for and lies behind `text`. */
  tail: TerminalTail | null, };

/** What a command is ended with. */
export type TerminalSignal = "term" | "kill";

/** Whether a command in the background runs. */
export type TerminalStatus = "running" | "exited" | "lost";

/** The end of an output. */
export type TerminalTail = {
  /** Where it begins. */
  offset: number,
  /** What was written from there on. */
  text: string,
  /** Where to go on reading. */
  next: number,
  /** How many bytes lie between the text before and this one. */
  left_out: number, };

/** Parameters of `terminal/write`.
 *
 * The command must have been started with its input open.
 */
export type TerminalWriteParams = {
  /** Which conversation. */
  conversation_id: ConversationId,
  /** Which session of it; `null` means the root. */
  session_id?: SessionId | null,
  /** The number of the terminal in that session. */
  terminal_id: number,
  /** What to write, as it is: a line needs its line end. */
  text?: string,
  /** Whether its input is closed after that. */
  end?: boolean,
  /** How many bytes have to be written to it before (`input_bytes`). A write that was made there already is not made again,
   * so one whose answer was lost can be sent again; `null` writes behind whatever there is.
   */
  at?: number, };

/** Result of `terminal/write`. */
export type TerminalWriteResult = {
  /** Whether the command could take all of it within 5 s; what is left waits for it to read on. */
  taken: boolean,
  /** The terminal as it is now. */
  terminal: Terminal, };

/** A point in time with millisecond precision, written as `2026-12-02T04:22:41.123Z`. */
export type Timestamp = string;

/** Parameters of `token/bind`. */
export type TokenBindParams = {
  /** The conversation. */
  conversation_id: ConversationId,
  /** The session. */
  session_id: SessionId,
  /** What it allows there; at least one right, and not `admin`. */
  rights: Rights,
  /** For how long, 1 second to 7 days. */
  expires_in_seconds: number, };

/** Result of `token/bind`. */
export type TokenBindResult = {
  /** The token: what it is good for, a colon, 64 hex digits. */
  token: TokenText,
  /** From when on it is good for nothing. */
  expires_at: Timestamp, };

/** Parameters of `token/create`. */
export type TokenCreateParams = {
  /** What to call it: 1 to 64 of `a-z A-Z 0-9 _ -`. */
  name: string,
  /** What it allows; at least one right. */
  rights: Rights, };

/** Result of `token/create`. */
export type TokenCreateResult = {
  /** The token: its name, a colon, 64 hex digits. */
  token: TokenText, };

/** What is known of a named token. */
export type TokenInfo = {
  /** Its name. */
  name: string,
  /** What it allows. */
  rights: Rights,
  /** When it was made. */
  created_at: Timestamp, };

/** Parameters of `token/list`. */
export type TokenListParams = Record<symbol, never>;

/** Result of `token/list`. */
export type TokenListResult = {
  /** The tokens by name. */
  tokens: Array<TokenInfo>, };

/** Parameters of `token/revoke`. */
export type TokenRevokeParams = {
  /** Its name. */
  name: string, };

/** Result of `token/revoke`: nobody new is let in with it. */
export type TokenRevokeResult = Record<symbol, never>;

/** Parameters of `token/rotate`. */
export type TokenRotateParams = Record<symbol, never>;

/** Result of `token/rotate`: the discovery file has the new token. */
export type TokenRotateResult = Record<symbol, never>;

/** A token as a text; its `Debug` form does not show it. */
export type TokenText = string;

/** A tool that the model asked for. */
export type ToolCall = {
  /** The id that the provider and the result know the call by; unique in its session. */
  call_id: string,
  /** The tool's name. */
  tool: string,
  /** The arguments as the model wrote them: JSON text, possibly broken. */
  arguments: string,
  /** Where it runs; `null` for a tool of the runtime itself, or one that is not known. */
  executor?: ExecutorId | null,
  /** Whether the model was cut off before it had written all arguments; such a call never runs. */
  cut?: boolean, };

/** What came of a tool call. */
export type ToolResult = {
  /** The item of the call. */
  call: ItemId,
  /** The id of the call as the provider knows it. */
  call_id: string,
  /** How it ended. */
  status: ToolResultStatus,
  /** What the model sees of it. */
  content: Array<Content>,
  /** Exit code, where a command ran to its end. */
  exit_code?: number | null,
  /** The whole output, where it is more than the model sees. */
  output?: BlobRef | null,
  /** The messages of other agents that the model reads in it: they come in no other way. */
  messages?: Array<ItemId>, };

/** How a tool call ended. */
export type ToolResultStatus = "ok" | "failed" | "interrupted" | "unknown";

/** Parameters of `trash/empty`. */
export type TrashEmptyParams = {
  /** Only these; empty means all. */
  conversation_ids?: Array<ConversationId>,
  /** Only those that were deleted at least so many seconds ago. */
  older_than_seconds: number, };

/** Result of `trash/empty`. */
export type TrashEmptyResult = {
  /** What is gone for ever. */
  removed: Array<TrashedConversation>, };

/** Parameters of `trash/list`. */
export type TrashListParams = Record<symbol, never>;

/** Result of `trash/list`. */
export type TrashListResult = {
  /** All that is in the trash, the last deleted first. */
  conversations: Array<TrashedConversation>, };

/** A deleted conversation that can still be restored. */
export type TrashedConversation = {
  /** Its id. */
  id: ConversationId,
  /** Its title, if it had one that can be read. */
  title: string | null,
  /** When it was deleted, as far as its log says. */
  deleted_at: Timestamp | null, };

/** One run of an agent, started by one input. */
export type Turn = {
  /** Its id. */
  id: TurnId,
  /** The session that it belongs to. */
  session_id: SessionId,
  /** Whether it runs, or how it ended. */
  status: TurnStatus,
  /** Why it failed, if it did. */
  failure: TurnFailure | null,
  /** The inputs that it has taken, the one that started it first. */
  inputs: Array<ItemId>,
  /** The model that it asked. */
  model: ModelRef,
  /** Where its tools ran. */
  executors: Array<WorkLocation>,
  /** How many model responses it has taken. */
  steps: number,
  /** Tokens used so far. */
  usage: Usage,
  /** When it started. */
  started_at: Timestamp,
  /** When it ended. */
  ended_at: Timestamp | null,
  /** The number of the last entry in its session's log when this state was written. */
  last_seq: number, };

/** Why a turn failed. */
export type TurnFailure = {
  /** What kind of trouble it was. */
  kind: TurnFailureKind,
  /** What happened and what to do about it. */
  message: string, };

/** What kind of trouble ended a turn. */
export type TurnFailureKind = "model" | "refused" | "step_limit" | "repeat_limit" | "storage" | "internal" | "context" | "budget";

/** Parameters of `turn/get`. */
export type TurnGetParams = {
  /** Which conversation. */
  conversation_id: ConversationId,
  /** Which turn of it, of whatever session. */
  turn_id: TurnId, };

/** Result of `turn/get`. */
export type TurnGetResult = {
  /** The turn as it is on disk. */
  turn: Turn, };

/** Names one turn of a session.
 *
 * Written as a lower-case hyphenated UUID; ids made later sort later.
 */
export type TurnId = string;

/** Parameters of `turn/list`. */
export type TurnListParams = {
  /** Which conversation. */
  conversation_id: ConversationId,
  /** Only turns of this session; `null` means of all. */
  session_id?: SessionId | null,
  /** By when they have started: the newest first if nobody says otherwise. */
  order?: ItemsOrder,
  /** The turn behind which the page begins, in that order; `null` begins at that end. */
  cursor?: TurnId | null,
  /** How many to give: 1 to 1,000, default 100. */
  limit?: number | null, };

/** Result of `turn/list`. */
export type TurnListResult = {
  /** The turns in that order. */
  turns: Array<Turn>,
  /** The cursor of the next page; `null` at the end. */
  next: TurnId | null, };

/** Whether a turn runs, or how it ended. */
export type TurnStatus = "running" | "completed" | "failed" | "interrupted";

/** Tokens that one model response, or all of a turn, used.
 *
 * `null` means that the provider did not say; it is never shown as zero.
 */
export type Usage = {
  /** Tokens of the request, cached ones included. */
  input_tokens: number | null,
  /** The part of `input_tokens` that was read from the provider's cache. */
  cached_input_tokens: number | null,
  /** Tokens of the answer, reasoning included. */
  output_tokens: number | null,
  /** The part of `output_tokens` that was reasoning. */
  reasoning_tokens: number | null, };

/** Parameters of `usage/get`. */
export type UsageGetParams = {
  /** Which conversation. */
  conversation_id: ConversationId, };

/** Result of `usage/get`. */
export type UsageGetResult = {
  /** The tokens of all its sessions; what no provider has said stays unknown. */
  total: Usage,
  /** Those of each session, the root first; those of a turn stand in the turn. */
  sessions: Array<SessionUsage>, };

/** What a person (or a program for one) said. */
export type UserMessage = {
  /** Text and images, in order. */
  content: Array<Content>,
  /** Whether it was read in the middle of a running turn. */
  steer?: boolean, };

/** An input that waits, with all that was said. */
export type WholePendingInput = {
  /** The id that it will have as an item. */
  item_id: ItemId,
  /** The beginning of its text, at most 200 characters. */
  preview: string,
  /** How many images it carries. */
  image_count: number,
  /** Whether it waits for the running turn, not for the next. */
  is_steer: boolean,
  /** When it was sent. */
  queued_at: Timestamp,
  /** All of it; a large image as a reference that `session/blob` reads. */
  content: Array<Content>, };

/** An executor and the folder on it that a conversation works in. */
export type WorkLocation = {
  /** Which executor. */
  executor: ExecutorId,
  /** The working directory there, absolute. */
  root: string, };
