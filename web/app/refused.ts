// Refused is an answer in words for the reader, such as that two runs are not alike.
export class Refused extends Error {
  constructor(
    text: string,
    readonly status = 0, // of the server's answer; 0: there is none
  ) {
    super(text);
  }
}
