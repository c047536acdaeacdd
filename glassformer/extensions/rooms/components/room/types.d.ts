// What the modules of this folder hand to each other.

/** The votes of a round; `counts` is null where there are too few to show. */
export interface Shown {
  voted: number;
  counts: number[] | null;
}

/** What everybody in a room may know, as `glassformer/extensions/rooms/events.py` sends it. */
export interface RoomState {
  moves: number;
  page: string;
  query: string;
  spread: number;
  question: string;
  choices: number;
  aloud: boolean;
  round: number;
  taken: boolean;
  shown: Shown[];
  answered: boolean;
  own: boolean;
  few: boolean;
  phase: "" | "vote" | "discuss";
  left: number;
  at: number;
}

export interface Counts {
  students: number;
  voted: number;
  expected: number;
}

/**
 * "away" while the server's store of the rooms does not answer, "ended" as the room was ended or left alone, "restarted" with the server, "none" if it was never known here, "foreign"
 * where the server takes this page for one of another site; "busy" where too many come from one network at once.
 */
export type Standing = "joining" | "there" | "lost" | "away" | "full" | "locked" | "busy" | "ended" | "restarted" | "none" | "foreign";

/** What is known of the room that this browser page is in; `until` is when what is timed ends, by this page's clock; `away` where the store is that does not answer. */
export interface Known {
  code: string;
  standing: Standing;
  state: RoomState | null;
  counts: Counts | null;
  until: number;
  away: string;
}
